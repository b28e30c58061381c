"""Norms: the readable formula, the fused module and numbers by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.parts.norms import LayerNormSpec, RootMeanSquareSpec, layer_norm


@given(width=st.integers(2, 17), size=st.sampled_from([1e-4, 1.0, 1e4]), epsilon=st.sampled_from([1e-5, 0.1]))
def test_the_readable_layer_norm_is_the_fused_one(width: int, size: float, epsilon: float) -> None:
    """Small inputs show where ε stands."""
    torch.manual_seed(width)
    fused = LayerNormSpec(epsilon=epsilon).build(width).double()
    gain, shift = fused.weight, fused.bias
    for parameter in (gain, shift):
        parameter.data = torch.randn_like(parameter)
    x = size * torch.randn(3, 5, width, dtype=torch.double)
    torch.testing.assert_close(fused(x), layer_norm(x, gain, shift, epsilon))


def test_layer_norm_by_hand() -> None:
    """Mean 5, variance 5 (divided by n, not n−1), ε 4: (x−5)/3."""
    x = torch.tensor([[2.0, 4.0, 6.0, 8.0]])
    gain, shift = torch.tensor([3.0, 3.0, 3.0, 6.0]), torch.tensor([0.0, 0.0, 1.0, 1.0])
    torch.testing.assert_close(layer_norm(x, gain, shift, 4.0), torch.tensor([[-3.0, -1.0, 2.0, 7.0]]))


def test_layer_norm_epsilon_is_the_lectures() -> None:
    assert LayerNormSpec().build(3).eps == 1e-5


def test_root_mean_square_by_hand() -> None:
    norm = RootMeanSquareSpec(epsilon=0.5).build(2)
    norm.weight.data = torch.tensor([2.0, 10.0])
    # (1² + 7²)/2 = 25; √(25 + 0.5)
    expected = torch.tensor([[2.0, 70.0]]) / 25.5**0.5
    torch.testing.assert_close(norm(torch.tensor([[1.0, 7.0]])), expected)


@pytest.mark.parametrize("spec", [LayerNormSpec, RootMeanSquareSpec])
def test_epsilon_must_be_positive(spec: type[LayerNormSpec]) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        spec(epsilon=0)
