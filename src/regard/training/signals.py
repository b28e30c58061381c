"""Stopping politely: a signal asks, the loop answers between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from regard.core.errors import RegardError


class Interrupted(RegardError):  # noqa: N818 - nothing went wrong
    """Training was asked to stop, and did, with everything saved."""

    def __init__(self, number: int, step: int) -> None:
        self.signal, self.step = signal.Signals(number), step
        self.exit_code = 128 + number
        super().__init__(
            f"stopped by {self.signal.name} after step {step}; everything is saved: "
            "give the same command again to go on from there"
        )


class StopNow(BaseException):
    """Leaves work that changes nothing and can be done again, such as a validation."""


class StopSignal:
    """Listens to SIGINT and SIGTERM while open. A second SIGINT no longer asks: KeyboardInterrupt."""

    def __init__(self) -> None:
        self.requested: int | None = None
        self._before: dict[int, Any] = {}
        self._may_interrupt = False

    def request(self, number: int) -> None:
        self.requested = number
        if self._may_interrupt:
            self._may_interrupt = False
            raise StopNow

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """In here a request is answered at once, with StopNow."""
        if self.requested is not None:
            raise StopNow
        self._may_interrupt = True
        try:
            yield
        finally:
            self._may_interrupt = False

    def __enter__(self) -> "StopSignal":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.request(number)
