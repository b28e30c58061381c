"""Make the next batches while the model works on this one."""

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Prefetch(Generic[Item]):
    """Iterates over ``sequence`` from ``start`` on; a thread stays at most ``ahead`` items in front.

    An exception in the thread is raised at the place in the order where it happened. Leaving the ``with``
    block (or ``close``) ends the thread at once.
    """

    def __init__(self, sequence: Sequence[Item], start: int = 0, ahead: int = 4) -> None:
        self._made: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(maxsize=max(1, ahead))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(sequence, start), daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        try:
            while not self._stop.is_set():
                item, error = self._made.get()
                if isinstance(error, StopIteration):
                    return
                if error is not None:
                    raise error
                yield item  # type: ignore[misc]  # without an error there is an item
        finally:
            self.close()

    def close(self) -> None:
        self._stop.set()
        # The thread may be waiting for room: make some, until it is gone.
        while self._thread.is_alive():
            with suppress(queue.Empty):
                self._made.get_nowait()
            self._thread.join(timeout=0.01)

    def __enter__(self) -> "Prefetch[Item]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self, sequence: Sequence[Item], start: int) -> None:
        try:
            for index in range(start, len(sequence)):
                item = sequence[index]
                if not self._put((item, None)):
                    return
            self._put((None, StopIteration()))
        except BaseException as error:  # whatever it is, it belongs to the consumer
            self._put((None, error))

    def _put(self, entry: tuple[Item | None, BaseException | None]) -> bool:
        while not self._stop.is_set():
            with suppress(queue.Full):
                self._made.put(entry, timeout=0.05)
                return True
        return False


def prefetch(sequence: Sequence[Item], start: int = 0, ahead: int = 4) -> Prefetch[Item]:
    return Prefetch(sequence, start, ahead)
