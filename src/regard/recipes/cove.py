"""What a translator makes of a text, as features: contextual vectors (CoVe, McCann et al. 2017)."""

from regard.core.errors import UsageError
from regard.heads.labels import LabelSpec
from regard.models.labeller import LabellerSpec
from regard.models.model import ModelSpec
from regard.parts.pooling import MaxSpec, MeanSpec, SeveralSpec
from regard.recipes.labelling import judging, learning
from regard.recipes.recurrent import luong
from regard.recipes.system import SystemSpec
from regard.training.thawing import ThawingSpec


def cove(start: ModelSpec | None = None) -> SystemSpec:
    """The encoder of a translator stays as it is; what it says at most and on average goes through a layer.

    Its vocabulary is the translator's, of the side it reads.
    """
    if start is not None and start.kind() != "sequence_to_sequence":
        raise UsageError(
            f"--from: cove reads with the encoder of a translator, not a model of kind {start.kind()!r}; "
            "classifier --freeze all takes any"
        )
    given = luong().model if start is None else start
    head = LabelSpec(
        pooling=SeveralSpec(parts=(MaxSpec(), MeanSpec())), hidden=150, activation="relu", dropout=0.3
    )
    training = learning(fresh=True, watch="accuracy")
    if start is not None:
        training = training.model_copy(update={"thawing": ThawingSpec(freeze="all")})
    model = LabellerSpec(encoder=given.reader(), head=head)
    return judging(given, head, texts=1).model_copy(update={"model": model, "training": training})
