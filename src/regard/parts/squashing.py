"""tanh x = 2 σ(2x) − 1, which is the quicker way where torch's own tanh is slow."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

_MANY = 4096
"""Values from which four passes, one of σ, cost less than one of tanh: σ was ten times as fast."""


def tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Up to rounding."""
    if not is_quicker_by_sigmoid(x, x.numel()):
        return x.tanh()
    squashed: Tensor = _Tanh.apply(x)  # type: ignore[no-untyped-call]
    return squashed


def is_quicker_by_sigmoid(like: Tensor, values: int) -> bool:
    return values >= _MANY and like.is_cpu


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        squashed = (x + x).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(squashed)
        return squashed

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> Tensor:
        (squashed,) = ctx.saved_tensors
        found: Tensor = torch.ops.aten.tanh_backward(incoming[0], squashed)
        return found
