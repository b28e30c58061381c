"""Progress for people, on stderr: a live line in a terminal, now and then a plain line elsewhere."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, Protocol, cast, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from regard.training.events import Ended, Noticed, Started, Stepped, Validated, Watcher


@runtime_checkable
class Stream(Protocol):
    """Where text goes: stderr, a file, a buffer."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...
    def isatty(self) -> bool: ...


def progress(quiet: bool = False, stream: Stream | None = None) -> list[Watcher]:
    """Who watches a training for a person: nobody if ``quiet``."""
    stream = sys.stderr if stream is None else stream
    if quiet:
        return []
    return [LiveProgress(stream)] if stream.isatty() else [PlainProgress(stream)]


class Pace:
    """Smoothed rates, and how much is left of the budget that will be used up first."""

    def __init__(self, start: Started) -> None:
        self._start = start
        self.loss: float | None = None
        self.tokens_per_second: float | None = None
        self.done = 0.0

    def take(self, event: Stepped) -> None:
        self.loss = _smooth(self.loss, event.loss)
        self.tokens_per_second = _smooth(self.tokens_per_second, event.tokens_per_second)
        steps, budget = self._start.steps, self._start.budget
        shares = [event.step / steps] if steps else []
        shares += [event.seconds / budget] if budget else []
        self.done = min(1.0, max(shares, default=0.0))

    def left(self, event: Stepped) -> float | None:
        """Seconds to the end, if this pace is kept; None when nothing tells the end."""
        start = self._start
        here = event.seconds - start.seconds
        guesses = []
        if start.steps is not None and event.step > start.step:
            guesses.append(here / (event.step - start.step) * (start.steps - event.step))
        if start.budget is not None:
            guesses.append(max(0.0, start.budget - event.seconds))
        return min(guesses) if guesses else None

    def describe(self, event: Stepped) -> str:
        total = "" if self._start.steps is None else f"/{self._start.steps}"
        text = (
            f"step {event.step}{total} · epoch {event.epoch} · loss {self.loss or event.loss:.4f} · "
            f"rate {event.rate:.2e} · {self.tokens_per_second or 0:,.0f} tokens/s"
        )
        left = self.left(event)
        return text if left is None else f"{text} · {duration(left)} left"


class _PersonWatcher(Watcher):
    """What live and plain progress have in common: the sentences."""

    def __init__(self) -> None:
        self.pace: Pace | None = None

    def say(self, line: str) -> None:
        raise NotImplementedError

    def on_start(self, event: Started) -> None:
        self.pace = Pace(event)
        if event.step:
            self.say(f"going on from step {event.step}")
        if event.precision != "float32":
            self.say(f"products in {event.precision}, all else in float32 (training.precision)")

    def on_notice(self, event: Noticed) -> None:
        self.say(f"note: {event.message}")

    def on_validation(self, event: Validated) -> None:
        what = "" if event.variant == "trained" else f" ({event.variant})"
        mark = " · best so far" if event.best else ""
        self.say(f"step {event.step} validation{what}: {scores(event.scores)}{mark}")

    def on_end(self, event: Ended) -> None:
        self.say(
            f"done after {event.step} steps ({event.reason}) in {duration(event.seconds)}; "
            f"best {event.best:.4f} at step {event.best_step} ({event.variant})"
        )


class PlainProgress(_PersonWatcher):
    """A line every ``every`` seconds: for files and pipes."""

    def __init__(
        self, stream: Stream, every: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._stream, self._every, self._clock = stream, every, clock
        self._last = clock()

    def say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def on_step(self, event: Stepped) -> None:
        assert self.pace is not None, "steps come after the start"
        self.pace.take(event)
        if self._clock() - self._last >= self._every:
            self._last = self._clock()
            self.say(self.pace.describe(event))


class LiveProgress(_PersonWatcher):
    """One line that moves, validations above it."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._bar = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            console=Console(file=cast(IO[str], stream)),
            transient=True,
            refresh_per_second=4,
        )
        self._task: TaskID | None = None

    def say(self, line: str) -> None:
        self._bar.console.print(line, highlight=False, markup=False)

    def on_start(self, event: Started) -> None:
        super().on_start(event)
        self._bar.start()
        total = None if event.steps is None and event.budget is None else 1.0
        self._task = self._bar.add_task("starting", total=total)

    def on_step(self, event: Stepped) -> None:
        assert self.pace is not None, "steps come after the start"
        assert self._task is not None
        self.pace.take(event)
        self._bar.update(self._task, completed=self.pace.done, description=self.pace.describe(event))

    def close(self) -> None:
        self._bar.stop()


def scores(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in values.items())


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _smooth(mean: float | None, value: float, memory: float = 0.95) -> float:
    return value if mean is None else memory * mean + (1 - memory) * value
