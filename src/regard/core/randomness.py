"""Where parts draw random numbers from: torch's generator, or one of their own for work done side by side."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_current: ContextVar[torch.Generator | None] = ContextVar("current_generator", default=None)


def current_generator() -> torch.Generator:
    """Draw from this: torch's own generator is shared by all threads, so that their order would count."""
    chosen = _current.get()
    return torch.default_generator if chosen is None else chosen


@contextmanager
def drawing_from(generator: torch.Generator | None) -> Iterator[None]:
    """In this thread, and until the end of the block, parts draw from ``generator``."""
    token = _current.set(generator)
    try:
        yield
    finally:
        _current.reset(token)
