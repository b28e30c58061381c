"""A line alone may be computed by several threads, as long as nobody keeps them company.

Threads that compute one line wait for each other all the time. They are faster than one alone where nobody
else computes, and many times slower where a single core is taken away; that comes and goes. So a line now and
then goes to one thread, and while that is faster the others do, too. Nothing is computed twice for it.
"""

from collections import deque
from statistics import median

from regard.engines.layout import Layout

_RARELY, _OFTEN = 32, 8
"""Lines from one that goes to a single thread to the next, once enough is known and before."""
_KNOWN, _RECENT = 5, 12
"""Lines by which one thread, and several, are judged."""
_FASTER = 1.1
"""Times as fast that one thread must be: lines differ."""
_APART = 256
"""Lines that go to one thread before several are tried again."""


class Company:
    def __init__(self) -> None:
        self._single = deque[float](maxlen=_KNOWN)
        self._several = deque[float](maxlen=_RECENT)
        """Seconds a token of the last lines."""
        self._lines = self._apart = 0

    def layout(self, chosen: Layout) -> Layout:
        """For the next line, where several threads are fastest among themselves."""
        if self._apart:
            self._apart -= 1
            return _one_thread(chosen)
        self._lines += 1
        pause = _RARELY if len(self._single) == _KNOWN else _OFTEN
        return _one_thread(chosen) if self._lines % pause == 0 else chosen

    def took(self, layout: Layout, tokens: int, seconds: float) -> None:
        pace = seconds / max(1, tokens)
        if layout.threads == 1:
            self._single.append(pace)
            return
        self._several.append(pace)
        if len(self._single) < _KNOWN or len(self._several) < _RECENT:
            return
        if median(self._several) > _FASTER * median(self._single):
            self._apart = _APART
            self._several.clear()


def _one_thread(layout: Layout) -> Layout:
    return layout._replace(threads=1)
