"""From the threads of runs to the event loop: one call for all that has been answered meanwhile."""

import asyncio
from collections import deque


class Over:
    """Somebody waits here until there is an answer, or no reason to wait any longer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.waiting = loop, loop.create_future()

    def settle(self) -> None:
        if not self.waiting.done():
            self.waiting.set_result(None)


class Post:
    """To wake the loop for every answer of a batch would cost more than to write the answers."""

    def __init__(self) -> None:
        self._told: deque[Over] = deque()
        self._called = False

    def tell(self, over: Over) -> None:
        """From any thread."""
        self._told.append(over)
        if self._called:  # and not yet come: it will find this one, too
            return
        self._called = True
        try:
            over.loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the server has stopped meanwhile
            return

    def _deliver(self) -> None:
        self._called = False  # first, so that whatever comes from now on calls again
        while self._told:
            self._told.popleft().settle()
