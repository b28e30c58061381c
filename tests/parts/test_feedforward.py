"""The position-wise network against its formula."""

import math

import pytest
import torch
from torch import Tensor

from regard.parts.feedforward import ACTIVATIONS, Feedforward, initialise

WIDTH, HIDDEN = 5, 7


def plain(name: str, x: float) -> float:
    match name:
        case "relu":
            return max(x, 0.0)
        case "gelu":
            return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))
        case "gelu_tanh":
            return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        case "silu":
            return x / (1 + math.exp(-x))
    return math.tanh(x)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas(name: str) -> None:
    x = torch.linspace(-9, 9, 37, dtype=torch.double)
    expected = torch.tensor([plain(name, float(number)) for number in x], dtype=torch.double)
    torch.testing.assert_close(ACTIVATIONS[name](x), expected)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_two_layers_and_a_gate(gated: bool, bias: bool) -> None:
    """W₂ φ(W₁ x + b₁) + b₂; gated: W₂ (φ(W₁ x + b₁) ⊙ (V x + c)) + b₂."""
    torch.manual_seed(0)
    network = Feedforward(WIDTH, HIDDEN, "silu", gated=gated, bias=bias).double()
    for parameter in network.parameters():
        parameter.data = torch.randn_like(parameter)
    x = torch.randn(2, 3, WIDTH, dtype=torch.double)

    def affine(part: torch.nn.Linear, value: Tensor) -> Tensor:
        assert (part.bias is not None) == bias
        product = torch.einsum("...i,oi->...o", value, part.weight)
        return product if part.bias is None else product + part.bias

    hidden = affine(network.widen, x)
    hidden = hidden * torch.sigmoid(hidden)
    if gated:
        assert network.gate is not None
        hidden = hidden * affine(network.gate, x)
    torch.testing.assert_close(network(x), affine(network.narrow, hidden))


def test_initialise_keeps_the_variance_and_begins_without_bias() -> None:
    torch.manual_seed(0)
    linear = initialise(torch.nn.Linear(200, 300), gain=0.5)
    assert linear.weight.std().item() == pytest.approx(0.5 * math.sqrt(2 / 500), rel=0.02)
    assert not linear.bias.any()
