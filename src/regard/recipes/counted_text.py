"""n-grams: the next word by what followed the last few before (Shannon 1948; Chen and Goodman 1998)."""

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.models.ngram import NgramSpec
from regard.objectives.running_text import RunningTextSpec
from regard.recipes.system import SystemSpec
from regard.search.sampling import SamplingSpec
from regard.tasks.continuation import ContinuationSpec
from regard.training.counting import CountingSpec
from regard.training.evaluation import EvaluationSpec


def ngram() -> SystemSpec:
    """Words in the light of the four before, interpolated modified Kneser-Ney."""
    return SystemSpec(
        data=TextSpec(
            tokenizer=TokenizerSpec(unit="word", size=200_000),
            documents="line",
            order="running",
            window=512,
            rows=16,
        ),
        model=NgramSpec(order=5),
        objective=RunningTextSpec(),
        training=CountingSpec(),
        task=ContinuationSpec(carries=True, window=512),
        search=SamplingSpec(longest_ratio=0.0, longest_extra=100),
        evaluation=EvaluationSpec(metric=None),
    )
