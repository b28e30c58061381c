"""Products of rounded factors: right where rounding loses nothing, near otherwise, only while learning."""

import pytest
import torch
from torch import Tensor, nn

from regard.core.precision import factors_of, factors_rounded_to, rounded_to
from regard.core.processor import Processor
from regard.parts.agreement import agreement_cost, readable_agreement
from regard.parts.cross_entropy import cross_entropy, readable_cross_entropy
from regard.parts.linear import Linear, linear, rounded_rows

CPU = torch.device("cpu")


def short_numbers(*size: int) -> Tensor:
    """Whole numbers up to 8: bfloat16 has them exactly, and so are small sums of their products."""
    return torch.randint(-8, 9, size, generator=torch.Generator().manual_seed(sum(size))).float()


def value_and_gradients(layer: nn.Linear, x: Tensor) -> list[Tensor]:
    y = layer(x)
    weights = [layer.weight, *([] if layer.bias is None else [layer.bias])]
    return [y, *torch.autograd.grad((y * short_numbers(*y.shape).sign()).sum(), [x, *weights])]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [(), (3,), (2, 3)])
def test_short_numbers_lose_nothing(bias: bool, rows: tuple[int, ...]) -> None:
    ours, torchs = Linear(4, 3, bias=bias), nn.Linear(4, 3, bias=bias)
    with torch.no_grad():
        for layer in (ours, torchs):
            layer.weight.copy_(short_numbers(3, 4))
            if bias:
                layer.bias.copy_(short_numbers(3))
    x = short_numbers(*rows, 4).requires_grad_()
    with factors_rounded_to(torch.bfloat16):
        found = value_and_gradients(ours, x)
    assert all(part.dtype == torch.float32 for part in found)
    # A product rounded once: eight bits of it are right.
    torch.testing.assert_close(found, value_and_gradients(torchs, x), rtol=2**-8, atol=0)


def test_other_numbers_are_rounded() -> None:
    x, weight = (torch.randn(7, 5).requires_grad_() for _ in range(2))
    exact = linear(x, weight)
    with factors_rounded_to(torch.bfloat16):
        rounded = linear(x, weight)
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0.02, atol=0.05)


def test_answers_are_never_rounded() -> None:
    x, weight = torch.randn(7, 5), torch.randn(3, 5)
    with factors_rounded_to(torch.bfloat16), torch.no_grad():
        assert torch.equal(linear(x, weight), nn.functional.linear(x, weight))
    assert rounded_to() is None


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    x, weight = torch.randn(7, 5), torch.randn(3, 5).requires_grad_()
    with factors_rounded_to(torch.bfloat16):
        linear(x, weight).sum().backward()
    assert weight.grad is not None
    assert x.grad is None


@pytest.mark.parametrize("bias", [True, False])
def test_costs_of_words_stay_near(bias: bool) -> None:
    random = torch.Generator().manual_seed(1)
    x, weight = (torch.randn(size, generator=random).requires_grad_() for size in ((2, 9, 8), (31, 8)))
    offset = torch.randn(31, generator=random).requires_grad_() if bias else None
    asked = [x, weight] + ([] if offset is None else [offset])
    wanted = torch.randint(31, (9,), generator=random)
    for quick, readable, given in (
        (cross_entropy, readable_cross_entropy, (x[0], weight, offset, wanted, 0.1)),
        (agreement_cost, readable_agreement, (x, weight, offset, wanted, 0.1, 2.0)),
    ):
        expected = readable(*given)
        with factors_rounded_to(torch.bfloat16):
            found = quick(*given)
        assert found != expected
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.0)
        slopes, theirs = (torch.autograd.grad(cost, asked) for cost in (found, expected))
        for slope, other in zip(slopes, theirs, strict=True):
            assert (slope - other).norm() < 0.05 * other.norm()


def test_what_auto_means_depends_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.core import precision

    quick = Processor("EPYC", "AuthenticAMD", frozenset({"avx512_bf16"}))
    for present, dtype in ((quick, torch.bfloat16), (Processor(), None)):
        monkeypatch.setattr(precision, "processor", lambda present=present: present)
        assert factors_of("auto", CPU) is dtype
        assert factors_of("auto", torch.device("meta")) is None
        assert factors_of("float32", CPU) is None
        assert factors_of("bfloat16", CPU) is torch.bfloat16


def test_rows_come_in_few_sizes_and_little_is_wasted() -> None:
    sizes = {}
    for rows in range(2049):
        filled = rounded_rows(torch.ones(rows, 1), torch.bfloat16)
        assert int(filled.sum()) == rows or rows > 256  # bfloat16 counts no further
        assert not filled[rows:].any()
        sizes[rows] = len(filled)
    assert len(set(sizes.values())) < 100
    assert all(rows <= size < rows + max(16, rows / 8) for rows, size in sizes.items())
