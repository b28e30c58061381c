"""A tag for every word: names, opinions, slots; from nothing, or from a model that has read before."""

from regard.data.tagged import TaggedSpec
from regard.data.tokenizers import TokenizerSpec
from regard.heads.tags import ChainSpec, TagsSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.encoder import EncoderSpec
from regard.models.labeller import LabellerSpec
from regard.models.model import ModelSpec
from regard.objectives.judgement import JudgementSpec
from regard.parts.cells import LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.filters import Filters
from regard.parts.spelling import SpellingSpec
from regard.recipes.labelling import learning, recurrent_reader
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.stacks.join import PlainSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.tagging import TaggingSpec
from regard.training.evaluation import EvaluationSpec


def tagger(start: ModelSpec | None = None) -> SystemSpec:
    """The first piece of every word bears its tag (Devlin et al. 2019 §5.3), and its letters are added to it:
    many readers know small letters only, and a name is told by its capital one."""
    if start is None:
        return tagging(recurrent_reader(layers=2), TagsSpec(dropout=0.1), fresh=True)
    encoder = with_letters(start.reader())
    system = tagging(encoder, TagsSpec(dropout=0.1, chain=ChainSpec()), fresh=False)
    # Letters and chain are new: they want a higher rate, and longer, than what has read before.
    rate = min(round(0.115 / encoder.embedding.width, 6), 5e-4)
    return system.override(
        [
            f"data.layout.begin={str(start.begins).lower()}",
            *("data.letters=true", "data.scheme=bioes"),
            *("training.epochs=4", f"training.schedule.peak={rate}"),
        ]
    )


def with_letters(reader: EncoderSpec) -> EncoderSpec:
    if reader.embedding.spelling is not None or reader.embedding.letters is not None:  # it has some already
        return reader
    added = SpellingSpec(letter_width=25, filters=(Filters(width=3, count=50),))
    return reader.model_copy(update={"embedding": reader.embedding.model_copy(update={"letters": added})})


def bilstm_tagger() -> SystemSpec:
    """Words and their letters, one bidirectional LSTM, a conditional random field (Ma and Hovy 2016).

    Some words are forgotten in every batch, so that letters and neighbours must do for those never seen.
    """
    filters = (Filters(width=3, count=75), Filters(width=4, count=75))
    reader = EncoderSpec(
        embedding=EmbeddingSpec(
            width=250,
            spelling=SpellingSpec(letter_width=40, filters=filters, dropout=0.3),
            dropout=0.5,
            forgets=0.1,
        ),
        stack=StackSpec(
            blocks=(
                BlockSpec(
                    mixers=(RecurrentSpec(cell=LongShortTermSpec(width=200), direction="both"),),
                    join=PlainSpec(dropout=0.5),
                ),
            )
        ),
    )
    system = tagging(reader, TagsSpec(dropout=0.0, chain=ChainSpec()), fresh=True)
    # Letters tell what is a capital one, so words need not; what occurs once teaches what is unknown.
    words = ["data.tokenizer.lowercase=true", "data.tokenizer.min_count=2"]
    learned = ["training.averaging.ema=0.995"]
    return system.override(["data.letters=true", "data.scheme=bioes", *words, *learned])


def deep_tagger() -> SystemSpec:
    """Three layers; each direction reads both directions of the layer below (eq. 8 to 10)."""
    reader = recurrent_reader(width=100, layers=3, hidden=100, dropout=0.2, embedding_dropout=0.2)
    return tagging(reader, TagsSpec(dropout=0.0), fresh=True).override(["data.tokenizer.min_count=2"])


def tagging(encoder: EncoderSpec, head: TagsSpec, fresh: bool) -> SystemSpec:
    return SystemSpec(
        data=TaggedSpec(
            scheme="bio",
            tokenizer=TokenizerSpec(unit="blank", size=30_000),
            batch_tokens=1024 if fresh else 512,
            longest=256,
        ),
        model=LabellerSpec(encoder=encoder, head=head),
        objective=JudgementSpec(),
        training=learning(fresh, "f1", minutes=20.0, width=encoder.embedding.width, every=300),
        task=TaggingSpec(),
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric="f1", examples=4000),
    )
