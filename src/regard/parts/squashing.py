"""tanh x = 2 σ(2x) − 1, which is the quicker way where torch's own tanh is slow."""

import torch
from jaxtyping import Float
from torch import Tensor

_MANY = 4096
"""Values from which four passes, one of σ, cost less than one of tanh: σ was ten times as fast."""


def tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Up to rounding; where something is learned it is torch's own, and so is its gradient."""
    return (x + x).sigmoid_().mul_(2).sub_(1) if is_quicker_by_sigmoid(x, x.numel()) else x.tanh()


def is_quicker_by_sigmoid(like: Tensor, values: int) -> bool:
    return values >= _MANY and like.is_cpu and not torch.is_grad_enabled()
