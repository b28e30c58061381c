"""tanh by way of σ."""

import pytest
import torch

from regard.parts.squashing import is_quicker_by_sigmoid, tanh


@pytest.mark.parametrize("values", [10, 10_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_tanh_and_leaves_its_input_alone(values: int, dtype: torch.dtype) -> None:
    x = torch.linspace(-200, 200, values, dtype=dtype)
    before = x.clone()
    with torch.no_grad():
        torch.testing.assert_close(tanh(x), x.tanh(), rtol=1e-5, atol=3e-7)
    assert torch.equal(x, before)


def test_where_something_is_learned_it_is_torchs_own() -> None:
    x = torch.randn(10_000, requires_grad=True)
    assert not is_quicker_by_sigmoid(x, x.numel())
    assert torch.equal(tanh(x), x.tanh())
    with torch.no_grad():
        assert is_quicker_by_sigmoid(x, x.numel())
