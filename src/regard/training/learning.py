"""The family of ways to learn: by following gradients, or by counting once."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import nn

from regard.core.spec import Spec
from regard.objectives.objective import Objective
from regard.training.events import Watcher
from regard.training.result import TrainingResult, Validate
from regard.training.run_folder import RunFolder
from regard.training.stepping import Data, Prefetch


class Lesson(NamedTuple):
    """Everything that learning needs, each handed in."""

    model: nn.Module
    objective: Objective
    data: Data
    validate: Validate
    folder: RunFolder
    seed: int
    watchers: Sequence[Watcher]
    device: torch.device
    prefetch: Prefetch


class LearningSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "gradient": "regard.training.plan:TrainingSpec",
        "counting": "regard.training.counting:CountingSpec",
        "finished": "regard.training.finished:FinishedSpec",
    }
    unsaid: ClassVar[str | None] = "gradient"

    def refuse_impossible(self) -> None:
        """A UsageError where nothing can be learned, before any data is read."""

    def learn(self, lesson: Lesson) -> TrainingResult:
        """Learn, or go on learning, what the folder holds; leave the best weights there and in the model."""
        raise NotImplementedError

    def may_differ(self) -> list[str]:
        """Fields of the whole spec that may change when a run goes on."""
        return []
