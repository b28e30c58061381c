"""Texts of many requests, answered together by a few threads for each run.

A job is the texts of one request. Jobs with equal *work* (the same search, the same wishes) share batches.
The oldest job that waits says what work is done next; a batch is then filled from all jobs of that work in
turn, a text each, so that a request of a thousand lines does not hold up one of a single line.

While an engine searches one batch, the next is made ready and handed in, so that none of its workers has to
wait for Python; each such batch is given its share of the workers, for one large batch is searched faster
than its halves. What our own steps compute is computed batch by batch.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from regard.apps.serving.pace import Pace
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

    @property
    def elsewhere(self) -> bool:
        """Others compute it, and this process mostly waits: another batch may be begun meanwhile."""

    def do(self, rows: Sequence[Row], share: float) -> list[Any]:
        """One result a row, with so much of what computes: others are at work beside them."""


@dataclass(eq=False)
class Job:
    work: Work
    texts: Sequence[str]
    costs: Sequence[int]
    """About how many tokens each has."""
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

    @property
    def waiting_cost(self) -> int:
        return sum(self.costs[self.begun :])

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


class Batch(NamedTuple):
    """Texts that are answered together."""

    rows: list[Row]
    tokens: int
    share: float
    """Of what computes, what they are given."""

    @property
    def work(self) -> Work:
        return self.rows[0].job.work


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
    """Seconds that may pass between one text and the next that it waits for."""
    queue: int
    deadline: float
    crowd: int = 80
    """While more come than can be answered, no more requests are taken on than make batches worth while …"""
    patience: float = 0.15
    """… or than are answered within so many seconds: who is let in shall not wait long."""


_HANDS = 2
"""Batches that an engine searches at once, each with its share of the workers."""
_LONGEST = 4
"""Times ``linger`` that is waited for company at most."""
_SHARE, _ENOUGH, _LEAST = 1 / _HANDS, 0.8, 64
"""Of all that is here, what one batch takes where another may be begun meanwhile; how much of that is worth
beginning with; and so few tokens anyway. Who took everything would, with clients that ask again when they are
answered, get all of them together again and again, and the engine would wait for each such round; who waited
for the last of them, too."""


class Batcher:
    """Takes jobs from any thread; does them in its own. ``close`` finishes what was accepted."""

    def __init__(self, name: str, size: Size, watch: Callable[[Done], None] = lambda done: None) -> None:
        self.size, self.watch, self.pace = size, watch, Pace()
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._closing = self._lingering = False
        self._computing = False
        """Our own steps are at work."""
        self._idle = 0
        self._tokens = 0
        """Of all texts that wait: counted, for every request would add them up anew."""
        self._inside = 0
        """Requests that were let in and are not answered yet."""
        self.running = self._running_tokens = 0
        """Texts that are being answered, and what they cost."""
        self._threads = [
            threading.Thread(target=self._work, name=f"model {name} {hand}", daemon=True)
            for hand in range(_HANDS)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Texts that have not been taken into a batch."""
        with self._changed:
            return sum(job.waiting for job in self._jobs if not job.left)

    def check_room(self) -> None:
        """Asked before anything is done for a request that would not be let in."""
        with self._changed:
            self._check_room()

    def submit(self, job: Job) -> None:
        with self._changed:
            if self._closing:
                raise ClosedError
            self._check_room()
            self._jobs.append(job)
            self._inside += 1
            self._tokens += job.waiting_cost
            # Those who come between keep company: to wake a thread for each costs more than it gains.
            if self._enough(job.work) or (not self._lingering and self._may_begin(job.work)):
                self._changed.notify()
        job.future.add_done_callback(lambda _: self._forget(job))

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def join(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _check_room(self) -> None:
        if not self._inside:
            self.pace.rest()
        seconds = self.pace.seconds(self._tokens)
        full = len(self._jobs) >= self.size.queue or seconds > self.size.deadline
        if full or (self._crowded() and self.pace.overloaded):
            self.pace.sent_away()
            raise QueueFullError(max(1.0, min(seconds, 60.0)))

    def _crowded(self) -> bool:
        tokens = self._tokens + self._running_tokens
        return self._inside >= self.size.crowd and self.pace.seconds(tokens) >= self.size.patience

    def _forget(self, job: Job) -> None:
        with self._changed:
            self._inside -= 1
            if job in self._jobs:
                self._jobs.remove(job)
                self._tokens -= job.waiting_cost
                self._changed.notify()

    def _enough(self, work: Work) -> bool:
        return self._tokens >= _ENOUGH * self._share(work) or len(self._jobs) >= self.size.rows

    def _share(self, work: Work) -> int:
        """Tokens of the next batch at most."""
        if not work.elsewhere:
            return self.size.budget
        here = self._tokens + self._running_tokens
        return min(self.size.budget, max(_LEAST, round(_SHARE * here)))

    def _may_begin(self, work: Work) -> bool:
        return not self._computing or work.elsewhere

    def _oldest(self) -> Job | None:
        """Of those whose work can be begun now."""
        return next((job for job in self._jobs if self._may_begin(job.work)), None)

    def _work(self) -> None:
        while batch := self._taken():
            begun = time.monotonic()
            self._do(batch.rows, batch.share)
            with self._changed:
                self.running -= len(batch.rows)
                self._running_tokens -= batch.tokens
                self.pace.ended(begun, batch.tokens)
                self.pace.answered(max(row.job.arrived for row in batch.rows))
                if not batch.work.elsewhere:
                    self._computing = False
                    self._changed.notify()
            self.watch(Done(len(batch.rows), batch.tokens, time.monotonic() - begun))

    def _taken(self) -> Batch | None:
        """The next batch, as soon as there is one; none when all is done."""
        with self._changed:
            while True:
                self._linger()
                if oldest := self._oldest():
                    return self._begun(oldest.work)
                if self._closing and not self._jobs:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def _begun(self, work: Work) -> Batch:
        rows = self._next(work)
        tokens = sum(row.job.costs[row.place] for row in rows)
        alone = not self._jobs and not self.running
        self.running += len(rows)
        self._running_tokens += tokens
        if not work.elsewhere:
            self._computing = True
        if self._jobs:  # another hand may be free for them
            self._changed.notify()
        return Batch(rows, tokens, 1.0 if alone else 1 / _HANDS)

    def _linger(self) -> None:
        """Company may be on its way, not least those who have just been answered: wait as long as more come,
        unless there is enough already."""
        looked = time.monotonic()
        while (oldest := self._oldest()) and not self._closing and not self._enough(oldest.work):
            quiet = max(looked, self._jobs[-1].arrived) + self.size.linger
            latest = max(looked, oldest.arrived) + _LONGEST * self.size.linger
            if (until := min(quiet, latest) - time.monotonic()) <= 0:
                return
            self._lingering = True
            self._changed.wait(until)
            self._lingering = False

    def _next(self, work: Work) -> list[Row]:
        """A text of every job with this work, and again, until the budget is used."""
        jobs = [job for job in self._jobs if job.work == work]
        rows, tokens, budget = list[Row](), 0, self._share(work)
        while jobs and tokens < budget and len(rows) < self.size.rows:
            for job in jobs:
                length = job.costs[job.begun]
                if rows and (tokens + length > budget or len(rows) >= self.size.rows):
                    tokens = budget
                    break
                rows.append(Row(job, job.begun))
                tokens, job.begun = tokens + length, job.begun + 1
            jobs = [job for job in jobs if job.waiting]
        self._jobs = [job for job in self._jobs if job.waiting]
        self._tokens -= sum(row.job.costs[row.place] for row in rows)
        return rows

    def _do(self, rows: Sequence[Row], share: float) -> None:
        """All together; when that fails, in halves, so that what one text does wrong hurts no other."""
        rows = [row for row in rows if not row.job.left]
        if not rows:
            return
        try:
            results = rows[0].job.work.do(rows, share)
        except Exception as error:
            if len(rows) > 1:
                middle = len(rows) // 2
                self._do(rows[:middle], share)
                self._do(rows[middle:], share)
                return
            if not isinstance(error, RegardError):
                log.exception("a text could not be answered")
            rows[0].job.fail(error)
            return
        for row, result in zip(rows, results, strict=True):
            row.job.keep(row.place, result)
