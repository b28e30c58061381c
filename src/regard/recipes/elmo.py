"""Words in their context, from two language models that never meet (ELMo, Peters et al. 2018)."""

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.encoder import EncoderSpec
from regard.models.two_way import TwoWayModelSpec
from regard.objectives.both_ways import BothWaysSpec
from regard.parts.cells import ProjectedSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.filters import Filters
from regard.parts.spelling import SpellingSpec
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.stacks.join import PlainSpec, ResidualSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.two_sided import TwoSidedSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.optimisation import Adam
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def elmo() -> SystemSpec:
    """A quarter of the original's widths, an eighth of what its LSTMs hold.

    The original: width=512, held=4096, filters=(32, 32, 64, 128, 256, 512, 1024).
    """
    return reading_both_ways(two_way_model(width=128, held=512, filters=(8, 8, 16, 32, 64, 128, 256)))


def two_way_model(
    width: int, held: int, filters: tuple[int, ...], dropout: float = 0.1, letter_width: int = 16
) -> TwoWayModelSpec:
    """Letters, filters of widths 1 to 7, two highways; two layers, the second beside the first."""
    spelling = SpellingSpec(
        letter_width=letter_width,
        filters=tuple(Filters(width=place, count=count) for place, count in enumerate(filters, start=1)),
        activation="relu",
        highways=2,
        width=width,
    )
    cell = ProjectedSpec(width=width, held=held)
    blocks = (
        BlockSpec(mixers=(RecurrentSpec(cell=cell, direction="both"),), join=PlainSpec(dropout=dropout)),
        BlockSpec(mixers=(RecurrentSpec(cell=cell, direction="apart"),), join=ResidualSpec(dropout=dropout)),
    )
    return TwoWayModelSpec(
        encoder=EncoderSpec(
            embedding=EmbeddingSpec(width=width, spelling=spelling, dropout=dropout),
            stack=StackSpec(blocks=blocks),
        )
    )


def reading_both_ways(model: TwoWayModelSpec) -> SystemSpec:
    return SystemSpec(
        data=TextSpec(
            tokenizer=TokenizerSpec(unit="word", size=10_000),
            documents="line",
            letters=True,
            window=64,
            rows=20,
        ),
        model=model,
        objective=BothWaysSpec(),
        training=TrainingSpec(
            minutes=60,
            optimiser=Adam(),
            schedule=Linear(peak=3e-3, warmup=200),
            clip=1.0,
            validation=ValidationSpec(every=500),
        ),
        task=TwoSidedSpec(),
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric=None),
    )
