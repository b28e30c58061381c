"""The chunked loss is torch's, in value and gradient, whatever the chunks, the smoothing and the scores."""

import pytest
import torch
from torch import Tensor

from regard.parts.cross_entropy import Advice, cross_entropy, readable_cross_entropy

ROWS, WIDTH, WORDS = 23, 6, 41


def problem(scale: float = 1.0, bias: bool = True, rows: int = ROWS) -> tuple[list[Tensor], Tensor]:
    random = torch.Generator().manual_seed(3)
    tensors = [torch.randn(size, generator=random).double() for size in ((rows, WIDTH), (WORDS, WIDTH))]
    tensors += [torch.randn(WORDS, generator=random).double()] if bias else []
    wanted = torch.randint(WORDS, (rows,), generator=random)
    return [(tensor * scale).requires_grad_() for tensor in tensors], wanted


def value_and_gradients(function, tensors, wanted, smoothing, **options):  # type: ignore[no-untyped-def]
    x, weight, bias = tensors if len(tensors) == 3 else (*tensors, None)
    loss = function(x, weight, bias, wanted, smoothing, **options)
    return [loss, *torch.autograd.grad(2.5 * loss, tensors)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows_at_once", [1, 7, 23, 1000, None])
def test_chunks_change_nothing(smoothing: float, bias: bool, rows_at_once: int | None) -> None:
    tensors, wanted = problem(bias=bias)
    expected = value_and_gradients(readable_cross_entropy, tensors, wanted, smoothing)
    found = value_and_gradients(cross_entropy, tensors, wanted, smoothing, rows_at_once=rows_at_once)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("scale", [30.0, 1e4])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_wanted_word_of_probability_zero_has_a_finite_cost(scale: float, smoothing: float) -> None:
    tensors, wanted = problem(scale)
    tensors = [tensor.detach().float().requires_grad_() for tensor in tensors]
    expected = value_and_gradients(readable_cross_entropy, tensors, wanted, smoothing)
    found = value_and_gradients(cross_entropy, tensors, wanted, smoothing, rows_at_once=5)
    assert found[0].isfinite()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3 * scale)


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    tensors, wanted = problem()
    x, weight, bias = (tensor.detach() for tensor in tensors)
    x.requires_grad_()
    cross_entropy(x, weight, bias, wanted, 0.1).backward()
    expected = torch.autograd.grad(readable_cross_entropy(x, weight, bias, wanted, 0.1), x)[0]
    torch.testing.assert_close(x.grad, expected)
    assert weight.grad is None


def test_without_gradients_the_scores_are_not_kept() -> None:
    tensors, wanted = problem()
    with torch.no_grad():
        found = cross_entropy(*tensors, wanted, 0.1, rows_at_once=4)
    assert not found.requires_grad
    torch.testing.assert_close(found, readable_cross_entropy(*tensors, wanted, 0.1).detach())


def test_no_rows_cost_nothing() -> None:
    tensors, wanted = problem(rows=0)
    loss, *gradients = value_and_gradients(cross_entropy, tensors, wanted, 0.1)
    assert loss == 0
    assert all((gradient == 0).all() for gradient in gradients)


def test_gradients_are_right_by_finite_differences() -> None:
    tensors, wanted = problem(rows=3)
    assert torch.autograd.gradcheck(
        lambda *given: cross_entropy(*given, wanted, 0.2, rows_at_once=2), tensors
    )


def advice(share: float, rows: int = ROWS) -> Advice:
    random = torch.Generator().manual_seed(5)
    return Advice(torch.randn(rows, WORDS, generator=random).double().softmax(-1), share)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("rows_at_once", [1, 7, None])
def test_chunks_change_nothing_where_a_teacher_has_a_share(
    smoothing: float, share: float, rows_at_once: int | None
) -> None:
    tensors, wanted = problem()
    expected = value_and_gradients(readable_cross_entropy, tensors, wanted, smoothing, advice=advice(share))
    found = value_and_gradients(
        cross_entropy, tensors, wanted, smoothing, advice=advice(share), rows_at_once=rows_at_once
    )
    torch.testing.assert_close(found, expected)


def test_the_readable_path_is_the_divergence_from_the_teacher() -> None:
    """H(a, p) is KL(a‖p) and the teacher's own entropy, by torch's own function (Hinton et al. 2015)."""
    (x, weight, bias), wanted = problem()
    taught = advice(1.0).probabilities
    log_p = torch.nn.functional.linear(x, weight, bias).log_softmax(-1)
    apart = torch.nn.functional.kl_div(log_p, taught, reduction="sum")
    own = -(taught * taught.log()).sum()
    found = readable_cross_entropy(x, weight, bias, wanted, 0.1, Advice(taught, 1.0))
    torch.testing.assert_close(found, apart + own)


def test_who_knows_what_the_teacher_knows_has_nothing_to_learn_from_it() -> None:
    (x, weight, bias), wanted = problem()
    known = torch.nn.functional.linear(x, weight, bias).softmax(-1).detach()
    slopes = torch.autograd.grad(
        cross_entropy(x, weight, bias, wanted, 0.1, Advice(known, 1.0)), (x, weight, bias)
    )
    for slope in slopes:
        torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-12, rtol=0)
