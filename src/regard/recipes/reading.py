"""A reader from elsewhere with nothing on top: it gives vectors, and others start from it."""

from regard.data.labelled import LabelledSpec
from regard.data.tokenizers import TokenizerSpec
from regard.models.reader import ReaderSpec
from regard.objectives.judgement import JudgementSpec
from regard.parts.pooling import SummingUpSpec
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.tasks.vectors import VectorsSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.finished import FinishedSpec


def reading(
    model: ReaderSpec, vocabulary: int, summing: SummingUpSpec, longest: int | None = None
) -> SystemSpec:
    """Judged by pairs of texts and how alike people find them (Reimers and Gurevych 2019 §4)."""
    return SystemSpec(
        data=LabelledSpec(
            texts=2, wanted="number", tokenizer=TokenizerSpec(unit="imported", size=vocabulary)
        ),
        model=model,
        objective=JudgementSpec(),
        training=FinishedSpec(),
        task=VectorsSpec(summing=summing, longest=longest),
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric="spearman"),
    )
