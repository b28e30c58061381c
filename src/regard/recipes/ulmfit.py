"""One language model for any text, in three stages (ULMFiT, Howard and Ruder 2018).

Learn a language (``awd_lstm``), go on with the texts of a task (``ulmfit_lm --from``), then say what they are
(``ulmfit --from``): rates that rise fast and fall slowly, lower in lower layers, which thaw one by one.
"""

from regard.core.errors import UsageError
from regard.heads.labels import LabelSpec
from regard.models.labeller import LabellerSpec
from regard.models.model import ModelSpec
from regard.objectives.judgement import JudgementSpec
from regard.parts.pooling import SeveralSpec
from regard.recipes.labelling import judging
from regard.recipes.recurrent_text import awd_lstm
from regard.recipes.system import SystemSpec
from regard.training.optimisation import AdamW
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import SlantedTriangular
from regard.training.thawing import ThawingSpec

LAYER_DECAY = 1 / 2.6
"""§3.2."""


def ulmfit_lm(start: ModelSpec | None = None) -> SystemSpec:
    """The second stage: the language model of the first on other text, whose new words it learns as well."""
    first = awd_lstm()
    if start is None:
        return first
    if start.kind() != "language_model":
        raise UsageError(f"--from: ulmfit_lm goes on with a language model, not one of kind {start.kind()!r}")
    system = first.override(["data.grows=true", "data.tokenizer.size=20000"])
    training = tuned(peak=4e-3, thawing=ThawingSpec(layer_decay=LAYER_DECAY))
    return system.model_copy(update={"model": start, "training": training})


def ulmfit(start: ModelSpec | None = None) -> SystemSpec:
    """The third stage: what it has read at the end, at most and on average, two layers on top of it."""
    given = awd_lstm().model if start is None else start
    head = LabelSpec(pooling=SeveralSpec(), hidden=50, activation="relu", dropout=0.1)
    system = judging(given, head, texts=1).override(["data.layout={begin: false}"])
    thawing = ThawingSpec() if start is None else ThawingSpec(freeze="gradual", layer_decay=LAYER_DECAY)
    training = tuned(peak=2e-3 if start is None else 1e-2, thawing=thawing, watch="accuracy")
    model = LabellerSpec(encoder=given.reader(), head=head)
    return system.model_copy(update={"model": model, "objective": JudgementSpec(), "training": training})


def tuned(peak: float, thawing: ThawingSpec, watch: str = "loss") -> TrainingSpec:
    return TrainingSpec(
        minutes=10,
        optimiser=AdamW(betas=(0.7, 0.99), weight_decay=1e-6),
        schedule=SlantedTriangular(peak=peak),
        clip=0.25,
        validation=ValidationSpec(every=100, watch=watch),
        thawing=thawing,
    )
