"""What the loop tells those who watch it, and the log of it."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.training import durable


class Started(NamedTuple):
    step: int
    """0 for a new run, otherwise where it goes on."""
    steps: int | None
    seconds: float
    """Training time already spent."""
    budget: float | None
    """Training time allowed, in seconds."""
    precision: str = "float32"
    """In which numbers products with weights are computed."""


class Stepped(NamedTuple):
    step: int
    epoch: int
    loss: float
    """Mean per prediction."""
    rate: float
    norm: float
    """Of the gradient, before clipping."""
    tokens: int
    """Predictions in this step."""
    seconds: float
    """Training time so far."""
    tokens_per_second: float
    padding: float | None
    """Share of padding in this epoch's batches, where the data tells it."""
    parts: dict[str, float]
    """Mean per prediction of what the loss is made of."""


class Validated(NamedTuple):
    step: int
    scores: dict[str, float]
    best: bool
    """Better than all before, so saved."""
    variant: str
    """Which weights these are: "trained", "ema" or "average"."""
    seconds: float


class Checkpointed(NamedTuple):
    step: int
    path: Path


class Noticed(NamedTuple):
    """Something a person should know, though training goes on."""

    step: int
    message: str


class Ended(NamedTuple):
    step: int
    reason: str
    best: float
    best_step: int
    variant: str
    seconds: float


class Watcher:
    """Override what you want to see. Watchers look; they change nothing."""

    def on_start(self, event: Started) -> None: ...
    def on_step(self, event: Stepped) -> None: ...
    def on_validation(self, event: Validated) -> None: ...
    def on_checkpoint(self, event: Checkpointed) -> None: ...
    def on_notice(self, event: Noticed) -> None: ...
    def on_end(self, event: Ended) -> None: ...
    def close(self) -> None:
        """Training is over, in whatever way."""


class Together(Watcher):
    """Several watchers as one."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = list(watchers)

    def on_start(self, event: Started) -> None:
        for watcher in self._watchers:
            watcher.on_start(event)

    def on_step(self, event: Stepped) -> None:
        for watcher in self._watchers:
            watcher.on_step(event)

    def on_validation(self, event: Validated) -> None:
        for watcher in self._watchers:
            watcher.on_validation(event)

    def on_checkpoint(self, event: Checkpointed) -> None:
        for watcher in self._watchers:
            watcher.on_checkpoint(event)

    def on_notice(self, event: Noticed) -> None:
        for watcher in self._watchers:
            watcher.on_notice(event)

    def on_end(self, event: Ended) -> None:
        for watcher in self._watchers:
            watcher.on_end(event)

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.close()


class LogWatcher(Watcher):
    """One JSON object a line, unbuffered: what a checkpoint knows of is in the log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def on_start(self, event: Started) -> None:
        self._append("start", event)

    def on_step(self, event: Stepped) -> None:
        self._append("step", event)

    def on_validation(self, event: Validated) -> None:
        self._append("validation", event)

    def on_notice(self, event: Noticed) -> None:
        self._append("notice", event)

    def on_end(self, event: Ended) -> None:
        self._append("end", event)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, kind: str, event: Started | Stepped | Validated | Noticed | Ended) -> None:
        line = json.dumps({"event": kind, **_json_values(event._asdict())}, ensure_ascii=False) + "\n"
        with durable.said_clearly(self._path, "the last checkpoint still loads"):
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            rest = line.encode()
            while rest:  # a nearly full disk takes a part and says no only to the remainder
                rest = rest[os.write(self._file, rest) :]


def _json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinities: such a score becomes null."""
    return {
        key: _json_values(value)
        if isinstance(value, Mapping)
        else None
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for key, value in values.items()
    }
