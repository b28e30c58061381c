"""Texts of many requests, answered together by one thread for each run.

A job is the texts of one request. Jobs with equal *work* (the same search, the same wishes) share batches.
The oldest job that waits says what work is done next; a batch is then filled from all jobs of that work in
turn, a text each, so that a request of a thousand lines does not hold up one of a single line.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from regard.core.errors import RegardError

log = logging.getLogger("regard.serving")


class Row(NamedTuple):
    """One text of a job."""

    job: "Job"
    place: int

    @property
    def text(self) -> str:
        return self.job.texts[self.place]

    @property
    def number(self) -> int:
        return self.job.numbers[self.place]


@runtime_checkable
class Work(Protocol, Hashable):
    """What is to be done with texts. Equal works can be done together."""

    def do(self, rows: Sequence[Row]) -> list[Any]:
        """One result a row."""


@dataclass(eq=False)
class Job:
    work: Work
    texts: Sequence[str]
    lengths: Sequence[int]
    """In tokens."""
    numbers: Sequence[int]
    """By which samples are drawn."""
    hear: Callable[[int, str], None] | None = None
    """Is told, in the run's thread, of what is written while it is written."""
    future: "Future[list[Any]]" = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)
    begun: int = 0
    """So many of its texts have been taken into a batch."""
    results: dict[int, Any] = field(default_factory=dict)

    @property
    def left(self) -> bool:
        """Nobody waits any more, or an error has been told already."""
        return self.future.done()

    @property
    def waiting(self) -> int:
        return len(self.texts) - self.begun

    def cost(self, place: int) -> int:
        """An empty text is work too."""
        return max(1, self.lengths[place])

    @property
    def waiting_cost(self) -> int:
        return sum(self.cost(place) for place in range(self.begun, len(self.texts)))

    def keep(self, place: int, result: Any) -> None:
        self.results[place] = result
        if len(self.results) == len(self.texts):
            self._settle(lambda: self.future.set_result([self.results[n] for n in range(len(self.texts))]))

    def fail(self, error: BaseException) -> None:
        self._settle(lambda: self.future.set_exception(error))

    def _settle(self, settle: Callable[[], None]) -> None:
        try:
            settle()
        except InvalidStateError:  # who waited has left in this very moment
            assert self.future.done()


class QueueFullError(Exception):
    """Come back after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"come back in {seconds:.0f} seconds")
        self.seconds = seconds


class ClosedError(Exception):
    """Another batcher has taken over."""


class Done(NamedTuple):
    """A batch that was answered, for those who count."""

    texts: int
    tokens: int
    seconds: float


@dataclass(frozen=True)
class Size:
    """How much is done at once, and how much may wait."""

    budget: int
    rows: int
    linger: float
    queue: int
    deadline: float


class Batcher:
    """Takes jobs from any thread; does them in its own. ``close`` finishes what was accepted."""

    def __init__(self, name: str, size: Size, watch: Callable[[Done], None] = lambda done: None) -> None:
        self.size, self.watch = size, watch
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._closing = False
        self._speed: float | None = None
        self._tokens = 0
        """Of all texts that wait: counted, for every request would add them up anew."""
        self.running = 0
        """Texts in the batch that is being answered."""
        self._thread = threading.Thread(target=self._work, name=f"model {name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Texts that have not been taken into a batch."""
        with self._changed:
            return sum(job.waiting for job in self._jobs if not job.left)

    def submit(self, job: Job) -> None:
        with self._changed:
            if self._closing:
                raise ClosedError
            seconds = self._seconds_to_wait()
            if len(self._jobs) >= self.size.queue or seconds > self.size.deadline:
                raise QueueFullError(max(1.0, min(seconds, 60.0)))
            self._jobs.append(job)
            self._tokens += job.waiting_cost
            # Those who come between keep company: to wake the thread for each costs more than it gains.
            if len(self._jobs) == 1 or self._enough():
                self._changed.notify()
        job.future.add_done_callback(lambda _: self._forget(job))

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _forget(self, job: Job) -> None:
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                self._tokens -= job.waiting_cost
                self._changed.notify()

    def _seconds_to_wait(self) -> float:
        return 0.0 if self._speed is None else self._tokens / self._speed

    def _enough(self) -> bool:
        return self._tokens >= self.size.budget or len(self._jobs) >= self.size.rows

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._closing:
                    self._changed.wait()
                self._linger()
                rows = self._next()
                if not rows:
                    if self._closing and not self._jobs:
                        return
                    continue
                self.running = len(rows)
            begin = time.monotonic()
            self._do(rows)
            seconds = max(time.monotonic() - begin, 1e-6)
            tokens = sum(row.job.cost(row.place) for row in rows)
            before = tokens / seconds if self._speed is None else self._speed
            self._speed = 0.7 * before + 0.3 * tokens / seconds
            self.running = 0
            self.watch(Done(len(rows), tokens, seconds))

    def _linger(self) -> None:
        """Company may be on its way: wait a moment, unless there is enough already."""
        while self._jobs and not self._closing:
            until = self._jobs[0].arrived + self.size.linger - time.monotonic()
            if until <= 0 or self._enough():
                return
            self._changed.wait(until)

    def _next(self) -> list[Row]:
        """A text of every job with the oldest job's work, and again, until the budget is used."""
        if not self._jobs:
            return []
        work = self._jobs[0].work
        jobs = [job for job in self._jobs if job.work == work]
        rows, tokens = list[Row](), 0
        while jobs and tokens < self.size.budget and len(rows) < self.size.rows:
            for job in jobs:
                length = job.cost(job.begun)
                if rows and (tokens + length > self.size.budget or len(rows) >= self.size.rows):
                    tokens = self.size.budget
                    break
                rows.append(Row(job, job.begun))
                tokens, job.begun = tokens + length, job.begun + 1
            jobs = [job for job in jobs if job.waiting]
        self._jobs = [job for job in self._jobs if job.waiting]
        self._tokens -= sum(row.job.cost(row.place) for row in rows)
        return rows

    def _do(self, rows: Sequence[Row]) -> None:
        """All together; when that fails, in halves, so that what one text does wrong hurts no other."""
        rows = [row for row in rows if not row.job.left]
        if not rows:
            return
        try:
            results = rows[0].job.work.do(rows)
        except Exception as error:
            if len(rows) > 1:
                middle = len(rows) // 2
                self._do(rows[:middle])
                self._do(rows[middle:])
                return
            if not isinstance(error, RegardError):
                log.exception("a text could not be answered")
            rows[0].job.fail(error)
            return
        for row, result in zip(rows, results, strict=True):
            row.job.keep(row.place, result)
