"""Word vectors: a word by the company it keeps (Firth 1957; Mikolov et al. 2013)."""

from regard.data.tokenizers import TokenizerSpec
from regard.data.word_windows import WordWindowsSpec
from regard.models.word_vectors import WordVectorsSpec
from regard.objectives.negative_sampling import CbowSpec, SkipGramSpec
from regard.objectives.objective import ObjectiveSpec
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.tasks.word_vectors import WordVectorsTaskSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.optimisation import RowAdagrad
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def word2vec() -> SystemSpec:
    """Skip-gram: a word foresees those around it; five words of noise for each."""
    return word_vectors(SkipGramSpec(), peak=0.2)


def cbow() -> SystemSpec:
    """Those around a word foresee it, by the mean of their vectors."""
    # A word is compared with few others here: only large batches keep two cores busy.
    return word_vectors(CbowSpec(), peak=0.2, noise=16, rows=32)


def word_vectors(objective: ObjectiveSpec, peak: float, noise: int = 32, rows: int = 8) -> SystemSpec:
    return SystemSpec(
        data=WordWindowsSpec(
            tokenizer=TokenizerSpec(unit="word", size=500_000, lowercase=True, min_count=5),
            documents="line",
            window=1000,
            rows=rows,
            noise=noise,
        ),
        model=WordVectorsSpec(width=100),
        objective=objective,
        training=TrainingSpec(
            minutes=5,
            optimiser=RowAdagrad(),
            schedule=Linear(peak=peak),
            clip=None,
            validation=ValidationSpec(every=2000),
        ),
        task=WordVectorsTaskSpec(),
        search=RankingSpec(best=10),
        evaluation=EvaluationSpec(metric=None),
    )
