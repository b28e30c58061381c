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


def test_its_slope_is_that_of_tanh() -> None:
    x = torch.linspace(-6, 6, 10_000, dtype=torch.float64, requires_grad=True)
    assert is_quicker_by_sigmoid(x, x.numel())
    found, expected = (
        torch.autograd.grad((squash(x) * x.detach().cos()).sum(), x) for squash in (tanh, torch.tanh)
    )
    torch.testing.assert_close(found, expected)
