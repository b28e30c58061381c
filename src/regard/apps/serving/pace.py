"""How fast texts are answered, and whether more come than can be."""

import math
import time
from collections.abc import Callable

_OLD = 0.7
"""What the past weighs beside the last batch."""
_SOON = 0.05
"""Seconds to an answer that nobody calls waiting."""
_BURST = 0.1
"""Seconds without an answer that came soon after which what waits is no burst any more."""
_LASTS = 0.5
"""Seconds without anybody sent away after which an overload is over: where few are let in, some of them are
answered soon."""


class Pace:
    """Is told of every batch that ends, and of how long those in it have waited.

    Who waits least tells an overload from a burst (Nichols and Jacobson 2012): after a burst somebody is
    answered soon again, in an overload nobody is, however few are let in.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens = self._seconds = 0.0
        self._at_ease = self._counted = clock()
        self._sent_away = -math.inf

    def rest(self) -> None:
        """Nobody is inside."""
        self._at_ease = self._clock()

    def answered(self, latest: float) -> None:
        """Of those who are answered now, the last came then."""
        now = self._clock()
        if now - latest < _SOON:
            self._at_ease = now

    def sent_away(self) -> None:
        """Somebody was not let in, for there are too many."""
        self._sent_away = self._clock()

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
        """For some time now nobody was answered soon; until nobody is sent away any more."""
        now = self._clock()
        return now - self._at_ease > _BURST or now - self._sent_away < _LASTS
