"""Shards of a batch, each computed by a thread of its own on its own share of the cores.

Two threads that share every matrix product meet after each of several thousand operations, and what is too
small to share is done by one of them. Two threads with half of the batch each meet once, at the gradients.
Gradients are added in the order of the shards, and random numbers belong to a shard, so the result does not
depend on which thread was faster, nor on whether there were threads at all.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

import torch
from torch import nn

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


@contextmanager
def used_by_several(weights: Sequence[nn.Parameter]) -> Iterator[None]:
    """Around work in several threads that use the same weights.

    The place where a weight's gradient gathers is made by torch when the weight is first used, and lost with
    the last graph. To make it takes the weight's lock and then Python's; to slice a weight takes Python's and
    then the weight's: two threads that do so at once wait for each other for ever (torch 2.13). A view of
    each weight keeps that place from before the threads begin until all of them have ended.
    """
    views = [weight.view_as(weight) for weight in weights]
    yield
    del views


def _on(cores: int, work: Callable[[], Result]) -> Result:
    if torch.get_num_threads() != cores:  # a setting of this thread
        torch.set_num_threads(cores)
    return work()
