"""Learning by counting: one pass over the data, no gradient, nothing to resume."""

import contextlib
import time
from typing import Protocol, cast, runtime_checkable

import numpy as np

from regard.training import events
from regard.training.learning import LearningSpec, Lesson
from regard.training.result import TrainingResult
from regard.training.weights import named_weights


@runtime_checkable
class Counter(Protocol):
    """A model that learns from documents: document i is ``values[offsets[i]:offsets[i + 1]]``."""

    def learn(self, values: np.ndarray, offsets: np.ndarray) -> None: ...


@runtime_checkable
class Countable(Protocol):
    def documents(self) -> tuple[np.ndarray, np.ndarray]: ...


class CountingSpec(LearningSpec):
    def learn(self, lesson: Lesson) -> TrainingResult:
        model, folder = lesson.model, lesson.folder
        together = events.Together([events.LogWatcher(folder.log_path), *lesson.watchers])
        began = time.monotonic()
        with folder.locked(), contextlib.closing(together):
            folder.cut_log(0)
            together.on_start(events.Started(0, 1, 0.0, None))
            cast(Counter, model).learn(*cast(Countable, lesson.data).documents())
            scores = lesson.validate(model.to(lesson.device).eval())
            folder.save_weights(named_weights(model))
            seconds = time.monotonic() - began
            together.on_validation(events.Validated(1, scores, True, "trained", seconds))
            together.on_end(events.Ended(1, "counted", scores["loss"], 1, "trained", seconds))
        return TrainingResult(1, "counted", "loss", scores["loss"], 1, "trained", scores, seconds)
