"""W x + b, the product that most of the time goes into.

While a model learns, its factors may be rounded to numbers that the processor multiplies faster
(``core/precision``). The rounded factors are then also what is kept for the gradients: half the memory.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.precision import rounded_to

_FEWEST_ROWS = 16
"""Sizes of small batches are multiples of this."""


def linear(
    x: Float[Tensor, "*rows width"],
    weight: Float[Tensor, "out width"],
    bias: Float[Tensor, "out"] | None = None,
) -> Float[Tensor, "*rows out"]:
    dtype = rounded_to()
    if dtype is None or not torch.is_grad_enabled():
        return F.linear(x, weight, bias)
    product: Tensor = _Rounded.apply(x, weight, bias, dtype)  # type: ignore[no-untyped-call]
    return product


def factor(x: Tensor) -> Tensor:
    """As it goes into a product that writes down its own gradient."""
    dtype = rounded_to()
    return x if dtype is None else x.to(dtype)


def rounded_rows(x: Float[Tensor, "rows width"], dtype: torch.dtype) -> Float[Tensor, "more width"]:
    """Rounded, with rows of zeros at the end up to one of few sizes.

    What multiplies short numbers (oneDNN) makes a program for every shape and keeps it: batches of a thousand
    sizes would spend their time, and gigabytes, on that.
    """
    rows = len(x)
    more = more_rows(rows)
    if not more or x.dtype == dtype:
        return x.to(dtype)
    filled = x.new_empty((rows + more, x.shape[1]), dtype=dtype)
    filled[:rows] = x
    filled[rows:] = 0
    return filled


def more_rows(rows: int) -> int:
    """How many are missing to one of few sizes."""
    return -rows % max(_FEWEST_ROWS, 1 << max(0, rows.bit_length() - 5))


class Linear(nn.Linear):
    def forward(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows out"]:
        return linear(x, self.weight, self.bias)


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        ctx.shape, ctx.kept_as = x.shape, x.dtype
        flat = x.reshape(-1, x.shape[-1])
        factors = (rounded_rows(flat, dtype), weight.to(dtype))
        ctx.save_for_backward(*factors)
        product = F.linear(*factors)[: len(flat)].to(x.dtype).view(*x.shape[:-1], len(weight))
        return product if bias is None else product.add_(bias)

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (of_x, of_weight, of_bias) = ctx.saved_tensors, ctx.needs_input_grad[:3]
        slopes = incoming[0].reshape(-1, len(weight))
        rounded = rounded_rows(slopes, x.dtype)
        return (
            torch.mm(rounded, weight)[: len(slopes)].to(ctx.kept_as).view(ctx.shape) if of_x else None,
            torch.mm(rounded.t(), x).to(ctx.kept_as) if of_weight else None,
            slopes.sum(0) if of_bias else None,
            None,
        )
