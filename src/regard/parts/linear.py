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


class Linear(nn.Linear):
    def forward(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows out"]:
        return linear(x, self.weight, self.bias)


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        ctx.kept_as = x.dtype
        factors = (x.to(dtype), weight.to(dtype))
        ctx.save_for_backward(*factors)
        product = F.linear(*factors).to(x.dtype)
        return product if bias is None else product.add_(bias)

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (of_x, of_weight, of_bias) = ctx.saved_tensors, ctx.needs_input_grad[:3]
        slopes = incoming[0].reshape(-1, len(weight))
        rounded = slopes.to(x.dtype)
        return (
            torch.mm(rounded, weight).to(ctx.kept_as).view(x.shape) if of_x else None,
            torch.mm(rounded.t(), x.reshape(-1, x.shape[-1])).to(ctx.kept_as) if of_weight else None,
            slopes.sum(0) if of_bias else None,
            None,
        )
