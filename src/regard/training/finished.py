"""Nothing left to learn: a model that came from elsewhere and has no task of its own to get better at."""

from regard.core.errors import UsageError
from regard.training.learning import LearningSpec, Lesson
from regard.training.result import TrainingResult


class FinishedSpec(LearningSpec):
    def refuse_impossible(self) -> None:
        raise UsageError(
            "a model that only reads has nothing to learn from: start another from it, such as "
            "`regard train classifier --from RUN`, or tagger, pair_classifier, similarity"
        )

    def learn(self, lesson: Lesson) -> TrainingResult:
        raise AssertionError("refused before")
