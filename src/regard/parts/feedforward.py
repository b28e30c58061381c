"""The position-wise network between two attentions (Vaswani et al. 2017 eq. 2)."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.parts.dropout import Dropout
from regard.parts.linear import Linear

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
}
type_of_activation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh"]


class Feedforward(nn.Module):
    """W₂ φ(W₁ x); gated: W₂ (φ(W₁ x) ⊙ V x) (Shazeer 2020)."""

    def __init__(
        self,
        width: int,
        hidden: int,
        activation: type_of_activation = "relu",
        dropout: float = 0.0,
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.widen = Linear(width, hidden, bias=bias)
        self.gate = Linear(width, hidden, bias=bias) if gated else None
        self.dropout = Dropout(dropout)
        self.narrow = Linear(hidden, width, bias=bias)
        for linear in (self.widen, self.gate, self.narrow):
            if linear is not None:
                initialise(linear)

    def forward(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        hidden = self.activation(self.widen(x))
        if self.gate is not None:
            hidden = hidden * self.gate(x)
        y: Tensor = self.narrow(self.dropout(hidden))
        return y


def initialise(linear: nn.Linear, gain: float = 1.0) -> nn.Linear:
    """Glorot and Bengio 2010: variance kept forward and backward; no bias to begin with."""
    nn.init.xavier_uniform_(linear.weight, gain)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear
