"""What two readings of the same words cost when they should also agree (R-Drop, Liang et al. 2021 eq. 3).

A batch is read twice, each time with other units dropped, and the two predictions p and p′ of a word are
pulled towards it and towards each other:

    J = ½ [H(q, p) + H(q, p′)] + α/4 [KL(p‖p′) + KL(p′‖p)],   q = (1−ε) δ_wanted + ε/V

which is half of the paper's sum: one word counts as one prediction, however often it was read. A teacher's
advice has a share of q as in ``parts/cross_entropy.py``. The readable path lets torch find the gradients. The
chunked one writes them down where the scores stand:

    ∂J/∂scores = ½ (p − q) + α/4 [p (d − KL(p‖p′)) + p − p′],   d = log p − log p′
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.parts.cross_entropy import (
    Advice,
    Gradients,
    Wish,
    add_slope,
    chunks,
    readable_cross_entropy,
    rows_of_a_chunk,
    scores_of,
    smooth,
    sum_of_mean_scores,
)
from regard.parts.linear import factor


def readable_agreement(
    x: Float[Tensor, "readings rows width"],
    weight: Float[Tensor, "vocabulary width"],
    bias: Float[Tensor, "vocabulary"] | None,
    wanted: Int[Tensor, "rows"],
    smoothing: float,
    agreement: float,
    advice: Advice | None = None,
) -> Float[Tensor, ""]:
    """Sum over rows of what two readings of the wanted words cost; ``agreement`` is α."""
    costs = [readable_cross_entropy(reading, weight, bias, wanted, smoothing, advice) for reading in x]
    first, second = F.linear(x, weight, bias).log_softmax(-1)
    apart: Tensor = ((first.exp() - second.exp()) * (first - second)).sum()
    return torch.stack(costs).mean() + apart * (agreement / 4)


def agreement_cost(
    x: Float[Tensor, "readings rows width"],
    weight: Float[Tensor, "vocabulary width"],
    bias: Float[Tensor, "vocabulary"] | None,
    wanted: Int[Tensor, "rows"],
    smoothing: float,
    agreement: float,
    advice: Advice | None = None,
    rows_at_once: int | None = None,
) -> Float[Tensor, ""]:
    """The same sum as ``readable_agreement``, in chunks of rows and four matrices of scores."""
    if agreement <= 0:
        raise ValueError(f"readings that need not agree are two costs, not one: agreement is {agreement}")
    rows_at_once = rows_at_once or rows_of_a_chunk(weight)
    total: Tensor = _Chunked.apply(  # type: ignore[no-untyped-call]
        x, weight, bias, wanted, smoothing, agreement, advice, rows_at_once
    )
    return total


class _Chunked(torch.autograd.Function):
    """Gradients are computed on the way forward, where the probabilities are at hand, and scaled later."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        wanted: Tensor,
        smoothing: float,
        agreement: float,
        advice: Advice | None,
        rows_at_once: int,
    ) -> Tensor:
        gradients = Gradients.zero(x, weight, bias) if any(ctx.needs_input_grad) else None
        total = x.new_zeros(())
        of_words, wish = factor(weight), Wish.of(smoothing, advice)
        for rows in chunks(len(wanted), rows_at_once):
            own = wish.at(rows)
            total += _cost_of(x[:, rows], of_words, bias, wanted[rows], own, agreement, gradients, rows)
        flat = x.flatten(0, 1)
        if wish.smoothing:
            total = total - wish.smoothing / 2 * sum_of_mean_scores(flat, weight, bias)
        if gradients is not None:
            if wish.smoothing:
                slopes = Gradients(gradients.x.flatten(0, 1), gradients.weight, gradients.bias)
                smooth(slopes, flat, weight, wish.smoothing / 2)
            ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if part is None else part * incoming[0] for part in ctx.saved_tensors)
        return (*scaled, None, None, None, None, None)


def _cost_of(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    wanted: Tensor,
    wish: Wish,
    agreement: float,
    gradients: Gradients | None,
    rows: slice,
) -> Tensor:
    """What a few rows cost, but for the mean score that smoothing takes off; slopes are added on the way."""
    first, second = (scores_of(reading, weight, bias) for reading in x)
    place = wanted[:, None]
    found = first.gather(1, place) + second.gather(1, place)
    for scores in (first, second):  # log p, where the scores stood
        scores.sub_(scores.logsumexp(1, keepdim=True))
    right = first.gather(1, place) + second.gather(1, place)
    # What is spread over all words costs (1−λ) ε log Z: the score of the wanted one less its log p.
    wrong = wish.smoothing * (found - right) - wish.wanted * right
    if wish.advice is not None:
        for log_p in (first, second):
            wrong -= wish.taught * torch.linalg.vecdot(wish.advice, log_p)[:, None]
    p, other = first.exp(), second.exp()
    apart = first.sub_(second)
    away, back = torch.linalg.vecdot(p, apart), -torch.linalg.vecdot(other, apart)
    if gradients is not None:
        scale = agreement / 4
        there = torch.add(apart, (0.5 / scale + 1 - away)[:, None], out=second).mul_(p).sub_(other)
        here = apart.neg_().add_((0.5 / scale + 1 - back)[:, None]).mul_(other).sub_(p)
        for number, slope in enumerate((there, here)):
            slope.scatter_add_(1, place, torch.full_like(right, -wish.wanted / 2 / scale))
            if wish.advice is not None:
                slope.sub_(wish.advice, alpha=wish.taught / 2 / scale)
            add_slope(slope.mul_(scale), x[number], weight, gradients, gradients.x[number, rows])
    total: Tensor = wrong.sum() / 2 + (away + back).sum() * (agreement / 4)
    return total
