"""Vectors of what stands around a word (context2vec, Melamud et al. 2016)."""

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.between import BetweenSpec
from regard.models.encoder import EncoderSpec
from regard.objectives.between import BetweenWordsSpec
from regard.parts.cells import LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.stacks.join import PlainSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.filling import FillingSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.optimisation import Adam
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def context2vec() -> SystemSpec:
    """Two opposite LSTMs and a network that joins them; the original is 300 wide, with LSTMs of 600."""
    mixer = RecurrentSpec(cell=LongShortTermSpec(width=256), direction="both")
    return SystemSpec(
        data=TextSpec(
            tokenizer=TokenizerSpec(unit="word", size=20_000, lowercase=True, min_count=3, hides=True),
            documents="line",
            window=32,
            rows=64,
        ),
        model=BetweenSpec(
            encoder=EncoderSpec(
                embedding=EmbeddingSpec(width=128),
                stack=StackSpec(blocks=(BlockSpec(mixers=(mixer,), join=PlainSpec(dropout=0.1)),)),
            ),
            hidden=256,
            width=128,
        ),
        objective=BetweenWordsSpec(),
        training=TrainingSpec(
            minutes=30,
            optimiser=Adam(),
            schedule=Linear(peak=2e-3, warmup=100),
            clip=1.0,
            validation=ValidationSpec(every=500),
        ),
        task=FillingSpec(),
        search=RankingSpec(best=5),
        evaluation=EvaluationSpec(metric=None),
    )
