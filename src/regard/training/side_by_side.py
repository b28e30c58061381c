"""Shards of a batch, each computed by a thread of its own on its own share of the cores.

Two threads that share every matrix product meet after each of several thousand operations, and what is too
small to share is done by one of them. Two threads with half of the batch each meet once, at the gradients.
Gradients are added in the order of the shards, and random numbers belong to a shard, so the result does not
depend on which thread was faster, nor on whether there were threads at all.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import torch

Result = TypeVar("Result")


class SideBySide:
    def __init__(self, most: int) -> None:
        self.most = most
        self._pool: ThreadPoolExecutor | None = None

    def run(self, work: Sequence[Callable[[], Result]]) -> list[Result]:
        """All results, in order; the first piece is done by the calling thread."""
        if len(work) == 1:
            return [work[0]()]
        cores = torch.get_num_threads()
        share = max(1, cores // len(work))
        pool = self._pool = self._pool or ThreadPoolExecutor(self.most - 1, "shard")
        others = [pool.submit(copy_context().run, _on, share, piece) for piece in work[1:]]
        try:
            torch.set_num_threads(share)
            first = work[0]()
        finally:
            torch.set_num_threads(cores)
            # Also when the first fails: nobody may still be computing with weights that change next.
            errors = [other.exception() for other in others]
        for error in errors:
            if error is not None:
                raise error
        return [first, *(other.result() for other in others)]


def _on(cores: int, work: Callable[[], Result]) -> Result:
    if torch.get_num_threads() != cores:  # a setting of this thread
        torch.set_num_threads(cores)
    return work()
