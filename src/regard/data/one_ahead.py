"""A long sequence of large things, of which the next one is made while the last one is in use."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
Make: TypeAlias = Callable[[int, threading.Event], Item]
"""Item number n, a pure function of n; may give up, by raising anything, once the event is set."""


class OneAhead(Generic[Item]):
    """``get(n)`` is ``make(n)``; by the time ``get(n + 1)`` is called it is already being made.

    A thread lives no longer than it takes to make one item, there is never more than one, and no more than
    two items are held. What ``make(n)`` raises is raised by ``get(n)``.
    """

    def __init__(self, make: Make[Item]) -> None:
        self._make = make
        self._now: _Making[Item] | None = None
        self._next: _Making[Item] | None = None

    def get(self, number: int) -> Item:
        item = self.peek(number)
        if self._next is None:
            self._next = _Making(self._make, number + 1)
        return item

    def peek(self, number: int) -> Item:
        """The same, without beginning with the next."""
        if self._now is None or self._now.number != number:
            following, self._next = self._next, None
            if following is None or following.number != number:
                if following is not None:
                    following.stop()
                following = _Making(self._make, number)
            self._now = following
        return self._now.result()

    def close(self) -> None:
        """End the thread, if there is one; what was made is let go."""
        for making in (self._now, self._next):
            if making is not None:
                making.stop()
        self._now = self._next = None


class _Making(Generic[Item]):
    def __init__(self, make: Make[Item], number: int) -> None:
        self.number = number
        self._made: Future[Item] = Future()
        self._stop = threading.Event()
        # Not a daemon: it may be inside foreign code when the interpreter ends, and ends soon by itself.
        self._thread = threading.Thread(target=self._work, args=(make,), name=f"making {number}")
        self._thread.start()

    def result(self) -> Item:
        self._thread.join()
        return self._made.result()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self, make: Make[Item]) -> None:
        try:
            self._made.set_result(make(self.number, self._stop))
        except BaseException as error:  # whatever it is, it belongs to who asks for the item
            self._made.set_exception(error)
