"""The whole of a system: what a recipe returns, a run folder stores and ``--set`` changes."""

from pydantic import Field

from regard.core.spec import Spec
from regard.data.data import DataSpec
from regard.models.model import ModelSpec
from regard.objectives.objective import ObjectiveSpec
from regard.objectives.teaching import TeachingSpec
from regard.search.search import SearchSpec
from regard.tasks.task import TaskSpec
from regard.tasks.transduction import TransductionSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.learning import LearningSpec


class SystemSpec(Spec):
    data: DataSpec
    model: ModelSpec
    objective: ObjectiveSpec
    training: LearningSpec
    task: TaskSpec = TransductionSpec()
    search: SearchSpec
    evaluation: EvaluationSpec = EvaluationSpec()
    vectors: dict[str, str] = Field(default_factory=dict)
    """By field (text, source, target), a file of word vectors, or a run, that its table starts from."""
    teaching: TeachingSpec = TeachingSpec()
    """Who else says what follows."""
