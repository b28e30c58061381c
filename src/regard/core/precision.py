"""In which numbers products with weights are computed while a model learns.

Some processors multiply bfloat16 at twice the speed of float32. Where they do, both factors of a product are
rounded to it and the sums are kept in float32, as are the weights, their updates, norms, softmaxes and
everything else (Micikevicius et al. 2018; Kalamkar et al. 2019). Answers are always computed in float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import torch

from regard.core.processor import processor

Precision = Literal["auto", "float32", "bfloat16"]

_rounded_to: ContextVar[torch.dtype | None] = ContextVar("rounded_to", default=None)


def rounded_to() -> torch.dtype | None:
    """What factors of a product are rounded to, here and now; None: they are taken as they are."""
    return _rounded_to.get()


@contextmanager
def factors_rounded_to(dtype: torch.dtype | None) -> Iterator[None]:
    """Until the end of the block, and in this thread, products with weights round their factors."""
    token = _rounded_to.set(dtype)
    try:
        yield
    finally:
        _rounded_to.reset(token)


def factors_of(precision: Precision, device: torch.device) -> torch.dtype | None:
    """``auto``: bfloat16 on processors that multiply it faster."""
    if precision == "auto":
        faster = device.type == "cpu" and processor().multiplies_bfloat16_faster()
        precision = "bfloat16" if faster else "float32"
    return torch.bfloat16 if precision == "bfloat16" else None
