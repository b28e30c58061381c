"""Dropout keeps expectations, drops its share, draws from torch's generator, and only while training."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts.dropout import Dropout, LockedDropout, add_dropped, dropout, keep_mask, without_some

MANY = 400_000


def drawn(share: float, seed: int = 0, size: int = MANY) -> Tensor:
    torch.manual_seed(seed)
    return dropout(torch.ones(size), share)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_the_share_that_is_dropped_and_the_mean_are_those_of_torch(share: float) -> None:
    ours, torchs = drawn(share), F.dropout(torch.ones(MANY), share)
    deviation = math.sqrt(share * (1 - share) / MANY)
    assert (ours == 0).double().mean().item() == pytest.approx(share, abs=4 * deviation)
    assert ours.double().mean().item() == pytest.approx(1.0, abs=4 * deviation / (1 - share))
    assert ours.max().item() == pytest.approx(torchs.max().item(), rel=1e-4)
    assert set(ours.unique().tolist()) == {0.0, ours.max().item()}


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 128])
def test_neighbours_are_independent(lag: int) -> None:
    kept = (drawn(0.3) > 0).double() - 0.7
    correlation = (kept[lag:] * kept[:-lag]).mean().item() / 0.21
    assert abs(correlation) < 4 / math.sqrt(MANY)


def test_torchs_seed_decides() -> None:
    assert torch.equal(drawn(0.3, seed=5), drawn(0.3, seed=5))
    assert not torch.equal(drawn(0.3, seed=5), drawn(0.3, seed=6))
    torch.manual_seed(5)
    first, second = (dropout(torch.ones(1000), 0.5) for _ in range(2))
    assert not torch.equal(first, second)


def test_the_gradient_goes_where_the_value_went() -> None:
    x = torch.randn(7, 5).requires_grad_()
    y = dropout(x, 0.4)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x, y)


def test_adding_is_dropping_and_then_adding() -> None:
    x, y = (torch.randn(3, 9, dtype=torch.double).requires_grad_() for _ in range(2))
    torch.manual_seed(1)
    together = add_dropped(x, y, 0.3)
    torch.manual_seed(1)
    apart = x + dropout(y, 0.3)
    torch.testing.assert_close(together, apart)
    slope = torch.randn_like(x)
    gradients = (torch.autograd.grad(sum_of, (x, y), slope) for sum_of in (together, apart))
    torch.testing.assert_close(next(gradients), next(gradients))


@pytest.mark.parametrize("shape", [(), (1,), (3, 0), (5, 7, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    mask = keep_mask(torch.ones(shape, dtype=dtype), 0.5)
    assert mask.shape == shape
    assert mask.dtype == dtype
    assert set(mask.flatten().tolist()) <= {0.0, 2.0}


def test_a_share_next_to_one_drops_everything() -> None:
    assert (dropout(torch.ones(10), 1 - 1e-9) == 0).all()


def test_only_while_training() -> None:
    layer, x = Dropout(0.5), torch.ones(1000)
    assert (layer(x) == 0).any()
    layer.eval()
    assert layer(x) is x
    assert torch.equal(layer.add(x, x), x + x)


def test_locked_dropout_is_the_same_at_all_times() -> None:
    torch.manual_seed(1)
    locked = LockedDropout(0.4).train()
    y = locked(torch.ones(50, 7, 30))
    assert (y == y[:, :1]).all()
    assert y.unique().tolist() == pytest.approx([0.0, 1 / 0.6], rel=1e-4)
    assert float((y[:, 0] == 0).float().mean()) == pytest.approx(0.4, abs=0.04)
    assert (y[0, 0] != y[1, 0]).any()
    x = torch.randn(2, 3, 4)
    assert locked.eval()(x) is x


def test_words_are_forgotten_whole() -> None:
    torch.manual_seed(1)
    table = without_some(torch.ones(2000, 5), 0.1)
    assert (table == table[:, :1]).all()
    assert float((table[:, 0] == 0).float().mean()) == pytest.approx(0.1, abs=0.02)
