"""The cost of two readings that should agree is the paper's, in value and gradient, whatever the chunks."""

import pytest
import torch
from torch import Tensor

from regard.parts.agreement import agreement_cost, readable_agreement
from regard.parts.cross_entropy import Advice, readable_cross_entropy

ROWS, WIDTH, WORDS = 11, 6, 29


def problem(bias: bool = True, rows: int = ROWS) -> tuple[list[Tensor], Tensor]:
    random = torch.Generator().manual_seed(3)
    sizes = [(2, rows, WIDTH), (WORDS, WIDTH), *([(WORDS,)] if bias else [])]
    tensors = [torch.randn(size, generator=random).double().requires_grad_() for size in sizes]
    return tensors, torch.randint(WORDS, (rows,), generator=random)


def value_and_gradients(function, tensors, *rest, **options):  # type: ignore[no-untyped-def]
    x, weight, bias = tensors if len(tensors) == 3 else (*tensors, None)
    loss = function(x, weight, bias, *rest, **options)
    return [loss, *torch.autograd.grad(2.5 * loss, tensors)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("agreement", [0.5, 5.0])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows_at_once", [1, 4, 1000, None])
def test_chunks_change_nothing(
    smoothing: float, agreement: float, bias: bool, rows_at_once: int | None
) -> None:
    tensors, wanted = problem(bias)
    expected = value_and_gradients(readable_agreement, tensors, wanted, smoothing, agreement)
    found = value_and_gradients(
        agreement_cost, tensors, wanted, smoothing, agreement, rows_at_once=rows_at_once
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows_at_once", [4, None])
def test_a_teacher_has_the_same_share_of_both_readings(
    share: float, smoothing: float, rows_at_once: int | None
) -> None:
    tensors, wanted = problem()
    advice = Advice(torch.randn(ROWS, WORDS).double().softmax(-1), share)
    expected = value_and_gradients(readable_agreement, tensors, wanted, smoothing, 2.0, advice)
    found = value_and_gradients(
        agreement_cost, tensors, wanted, smoothing, 2.0, advice, rows_at_once=rows_at_once
    )
    torch.testing.assert_close(found, expected)


def test_the_readable_path_is_the_papers_sum_halved() -> None:
    """Cross-entropies and divergences by torch's own functions (Liang et al. 2021, equations 1 to 3)."""
    (x, weight, bias), wanted = problem()
    first, second = (torch.nn.functional.linear(one, weight, bias).log_softmax(-1) for one in x)
    wrong = readable_cross_entropy(x.flatten(0, 1), weight, bias, wanted.repeat(2), 0.1)
    apart = [
        torch.nn.functional.kl_div(b, a, reduction="sum", log_target=True)
        for a, b in ((first, second), (second, first))
    ]
    expected = (wrong + 3.0 * (apart[0] + apart[1]) / 2) / 2
    torch.testing.assert_close(readable_agreement(x, weight, bias, wanted, 0.1, 3.0), expected)


def test_readings_that_are_the_same_cost_what_one_costs() -> None:
    (x, weight, bias), wanted = problem()
    twice = x[:1].expand(2, -1, -1)
    expected = readable_cross_entropy(x[0], weight, bias, wanted, 0.1)
    torch.testing.assert_close(agreement_cost(twice, weight, bias, wanted, 0.1, 5.0), expected)


def test_no_rows_cost_nothing() -> None:
    tensors, wanted = problem(rows=0)
    loss, *gradients = value_and_gradients(agreement_cost, tensors, wanted, 0.1, 1.0)
    assert loss == 0
    assert all((gradient == 0).all() for gradient in gradients)


def test_agreement_must_weigh_something() -> None:
    (x, weight, bias), wanted = problem()
    with pytest.raises(ValueError, match="agreement is 0"):
        agreement_cost(x, weight, bias, wanted, 0.1, 0.0)
