"""Operands that steps share: the same numbers and the same gradients as without sharing."""

import weakref
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.precision import factors_rounded_to
from regard.parts.repeated import Values, Weights

WIDTH, OUT, ROWS, TIMES = 4, 6, 5, 4


def short_numbers(*size: int) -> Tensor:
    """Whole numbers up to 2: bfloat16 has them, and sums of their products, exactly."""
    return torch.randint(-2, 3, size, generator=torch.Generator().manual_seed(sum(size))).float()


def chain(product: Callable[[Tensor], Tensor], first: Tensor, counted: range = range(TIMES)) -> Tensor:
    """Every step multiplies what the one before has left; some of them count."""
    x, cost = first, first.new_zeros(())
    for time in range(TIMES):
        y = product(x)
        x = y[..., :WIDTH].sin()
        if time in counted:
            cost = cost + (time + 1) * y.pow(2).sum()
    return cost


def operands(bias: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    random = torch.Generator().manual_seed(1)
    first, weight, own = (
        torch.randn(size, generator=random).double().requires_grad_()
        for size in ((ROWS, WIDTH), (OUT, WIDTH), (OUT,))
    )
    return first, weight, own if bias else None


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("counted", [range(TIMES), range(2), range(3, 4)], ids=["all", "early", "last"])
def test_steps_with_shared_weights_are_products(bias: bool, counted: range) -> None:
    first, weight, own = operands(bias)
    taken = [part for part in (first, weight, own) if part is not None]
    found = chain(Weights(weight, own), first, counted)
    expected = chain(lambda x: F.linear(x, weight, own), first, counted)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, taken), torch.autograd.grad(expected, taken))


def test_rounded_factors_that_lose_nothing_give_the_same() -> None:
    weight, own, xs = short_numbers(OUT, WIDTH), short_numbers(OUT), short_numbers(3, ROWS, WIDTH)
    taken = [part.requires_grad_() for part in (weight, own, xs)]

    def gradients(product: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(sum(product(x).sum() * (n + 1) for n, x in enumerate(xs)), taken)

    with factors_rounded_to(torch.bfloat16):
        found = gradients(Weights(weight, own))
    torch.testing.assert_close(found, gradients(lambda x: F.linear(x, weight, own)), rtol=0, atol=0)


def test_weights_are_rounded_once_and_products_are_near() -> None:
    first, weight, own = operands(True)
    assert own is not None
    taken = [first, weight, own]
    with factors_rounded_to(torch.bfloat16):
        found = torch.autograd.grad(chain(Weights(weight, own), first), taken)
    expected = torch.autograd.grad(chain(lambda x: F.linear(x, weight, own), first), taken)
    assert not torch.equal(found[1], expected[1])
    for one, other in zip(found, expected, strict=True):
        assert (one - other).norm() < 0.1 * other.norm()


def test_weights_that_do_not_learn_are_only_multiplied_by() -> None:
    first, weight, own = operands(True)
    frozen = Weights(weight.detach(), None if own is None else own.detach())
    (found,) = torch.autograd.grad(chain(frozen, first), [first])
    (expected,) = torch.autograd.grad(chain(lambda x: F.linear(x, weight, own), first), [first])
    torch.testing.assert_close(found, expected)
    with torch.no_grad():
        assert not Weights(weight, own)(first).requires_grad


def test_two_chains_with_the_same_weights_add_up() -> None:
    """As in two halves of a batch."""
    first, weight, own = operands(True)
    found = sum(chain(Weights(weight, own), part) for part in (first[:2], first[2:]))
    expected = chain(lambda x: F.linear(x, weight, own), first)
    torch.testing.assert_close(torch.autograd.grad(found, [weight]), torch.autograd.grad(expected, [weight]))


def test_looks_at_shared_values_are_products() -> None:
    random = torch.Generator().manual_seed(1)
    weights = torch.randn(3, 2, 1, 2, 5, generator=random).double().requires_grad_()
    values = torch.randn(2, 1, 5, 4, generator=random).double().requires_grad_()

    def gradients(look: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        cost = sum((n + 1) * look(some).pow(2).sum() for n, some in enumerate(weights))
        return torch.autograd.grad(cost, [weights, values])

    torch.testing.assert_close(gradients(Values(values)), gradients(lambda some: some @ values))


@pytest.mark.parametrize("operand", ["weights", "values"])
def test_nothing_is_kept_when_gradients_are_made(operand: str) -> None:
    """Python's collector does not see through torch's graphs: what holds itself there is never let go."""
    first, weight, own = operands(True)
    product: Callable[[Tensor], Tensor] = Weights(weight, own)
    if operand == "values":
        product = Values(weight[None, None].transpose(-1, -2))
    x = first if operand == "weights" else first[None, None]
    cost = chain(product, x)
    torch.autograd.grad(cost, [first, weight])
    ledger = weakref.ref(product._ledger)  # type: ignore[attr-defined]
    del product, cost
    assert ledger() is None
