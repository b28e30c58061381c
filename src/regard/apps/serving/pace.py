"""How fast texts are answered, and whether more come than can be."""

import time
from collections.abc import Callable

_OLD = 0.7
"""What the past weighs beside the last batch."""
_BURST = 0.1
"""Seconds without a rest after which what waits is no burst any more."""


class Pace:
    """Is told of every batch that begins and ends, and of every rest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens = self._seconds = 0.0
        self._rested = self._counted = clock()

    def rest(self) -> None:
        """Somebody has nothing to do."""
        self._rested = self._clock()

    def ended(self, begun: float, tokens: int) -> None:
        """A batch is answered. Where several are under way, time that was counted for one is not counted
        again for the next."""
        now = self._clock()
        seconds = max(now - max(begun, self._counted), 1e-6)
        self._tokens = _OLD * self._tokens + (1 - _OLD) * tokens
        self._seconds = _OLD * self._seconds + (1 - _OLD) * seconds
        self._counted = now

    def seconds(self, tokens: int) -> float:
        """What so many are expected to take; nothing until something is known."""
        return tokens * self._seconds / self._tokens if self._tokens else 0.0

    @property
    def overloaded(self) -> bool:
        """For some time now nobody had a rest."""
        return self._clock() - self._rested > _BURST
