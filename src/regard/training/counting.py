"""Learning by counting: one pass over the data, no gradient, nothing to resume."""

import contextlib
import time
from collections.abc import Sequence
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import nn

from regard.objectives.objective import Objective
from regard.training import events
from regard.training.learning import LearningSpec
from regard.training.result import TrainingResult, Validate
from regard.training.run_folder import RunFolder
from regard.training.stepping import Data, Prefetch
from regard.training.weights import named_weights


@runtime_checkable
class Counter(Protocol):
    """A model that learns from documents: document i is ``values[offsets[i]:offsets[i + 1]]``."""

    def learn(self, values: np.ndarray, offsets: np.ndarray) -> None: ...


@runtime_checkable
class Countable(Protocol):
    def documents(self) -> tuple[np.ndarray, np.ndarray]: ...


class CountingSpec(LearningSpec):
    def learn(
        self,
        model: nn.Module,
        objective: Objective,
        data: Data,
        validate: Validate,
        folder: RunFolder,
        seed: int,
        watchers: Sequence[events.Watcher],
        device: torch.device | str,
        prefetch: Prefetch,
    ) -> TrainingResult:
        together = events.Together([events.LogWatcher(folder.log_path), *watchers])
        began = time.monotonic()
        with folder.locked(), contextlib.closing(together):
            folder.cut_log(0)
            together.on_start(events.Started(0, 1, 0.0, None))
            cast(Counter, model).learn(*cast(Countable, data).documents())
            scores = validate(model.to(device).eval())
            folder.save_weights(named_weights(model))
            seconds = time.monotonic() - began
            together.on_validation(events.Validated(1, scores, True, "trained", seconds))
            together.on_end(events.Ended(1, "counted", scores["loss"], 1, "trained", seconds))
        return TrainingResult(1, "counted", "loss", scores["loss"], 1, "trained", scores, seconds)
