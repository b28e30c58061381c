"""What a vector costs when a certain word was wanted, with one matrix of scores instead of three.

    J = −Σ_rows Σ_v q(v) log softmax(W x + b)_v,   q = (1−ε) δ_wanted + ε/V   (Szegedy et al. 2016 §7)

Where a teacher says what else might have followed, a share of q is what it finds likely: q′ = (1−λ) q + λ a
(Hinton et al. 2015; for words in a sentence Kim and Rush 2016 eq. 7).

The readable path is ``torch.nn.functional.cross_entropy`` over the logits. Over a vocabulary of ten thousand
words that moves a matrix of rows × V through memory many times, and holds three of them. The chunked path
keeps one, turns it from scores into probabilities and into their gradient where it stands, and never writes
down the gradient of the smoothing:

    ∂J/∂logits = p − (1−ε) δ_wanted − ε/V,   and what the last term adds to the gradients is
    −ε mean_v(W) for every x, and −ε/V Σ x for every row of W.

With advice, ε and 1−ε are (1−λ) as large, and λ a is taken off the slope as it is.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.parts.linear import factor, rounded_rows

_SCORES_AT_ONCE = 1 << 26
"""Scores of one chunk: a quarter of a gigabyte. Smaller ones were slower: each reads all of W three times."""
_NEXT_TO_NOTHING = 1e-30
"""Below this a probability loses digits, and its logarithm is taken another way."""
_FEWEST_ROWS = 64
"""A matrix product over fewer rows wastes more than the cache saves."""


class Advice(NamedTuple):
    """What a teacher finds likely in every row, and how much it counts beside the word that was wanted."""

    probabilities: Float[Tensor, "rows vocabulary"]
    share: float


def readable_cross_entropy(
    x: Float[Tensor, "rows width"],
    weight: Float[Tensor, "vocabulary width"],
    bias: Float[Tensor, "vocabulary"] | None,
    wanted: Int[Tensor, "rows"],
    smoothing: float = 0.0,
    advice: Advice | None = None,
) -> Float[Tensor, ""]:
    """Sum over rows of what the wanted words cost."""
    scores = F.linear(x, weight, bias)
    cost = F.cross_entropy(scores, wanted, reduction="sum", label_smoothing=smoothing)
    if advice is None:
        return cost
    taught = F.cross_entropy(scores, advice.probabilities, reduction="sum")
    return (1 - advice.share) * cost + advice.share * taught


def cross_entropy(
    x: Float[Tensor, "rows width"],
    weight: Float[Tensor, "vocabulary width"],
    bias: Float[Tensor, "vocabulary"] | None,
    wanted: Int[Tensor, "rows"],
    smoothing: float = 0.0,
    advice: Advice | None = None,
    rows_at_once: int | None = None,
) -> Float[Tensor, ""]:
    """The same sum as ``readable_cross_entropy``, in chunks of rows."""
    rows_at_once = rows_at_once or rows_of_a_chunk(weight)
    total: Tensor = _Chunked.apply(x, weight, bias, wanted, smoothing, advice, rows_at_once)  # type: ignore[no-untyped-call]
    return total


class Wish(NamedTuple):
    """The parts of q′."""

    wanted: float
    """Of the wanted word alone: (1−λ)(1−ε)."""
    smoothing: float
    """Spread over all of them: (1−λ) ε."""
    taught: float
    """By a teacher: λ."""
    advice: Float[Tensor, "rows vocabulary"] | None

    @classmethod
    def of(cls, smoothing: float, advice: Advice | None) -> "Wish":
        if advice is None:
            return cls(1 - smoothing, smoothing, 0.0, None)
        left = 1 - advice.share
        return cls(left * (1 - smoothing), left * smoothing, advice.share, advice.probabilities)

    def at(self, rows: slice) -> "Wish":
        return self if self.advice is None else self._replace(advice=self.advice[rows])


class Gradients(NamedTuple):
    """Slopes of a cost, filled chunk by chunk."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None

    @classmethod
    def zero(cls, x: Tensor, weight: Tensor, bias: Tensor | None) -> "Gradients":
        return cls(
            torch.empty_like(x), torch.zeros_like(weight), None if bias is None else torch.zeros_like(bias)
        )


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
        advice: Advice | None,
        rows_at_once: int,
    ) -> Tensor:
        gradients: Gradients | None = None
        if any(ctx.needs_input_grad):
            gradients = Gradients.zero(x, weight, bias)
        of_words, wish = factor(weight), Wish.of(smoothing, advice)
        losses = [
            _cost_of(x[rows], of_words, bias, wanted[rows], wish.at(rows), gradients, rows)
            for rows in chunks(len(x), rows_at_once)
        ]
        total = torch.stack(losses).sum() if losses else x.new_zeros(())
        if wish.smoothing:
            total = total - wish.smoothing * sum_of_mean_scores(x, weight, bias)
        if gradients is not None:
            if wish.smoothing:
                smooth(gradients, x, weight, wish.smoothing)
            ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if part is None else part * incoming[0] for part in ctx.saved_tensors)
        return (*scaled, None, None, None, None)


def rows_of_a_chunk(weight: Tensor) -> int:
    return max(_FEWEST_ROWS, _SCORES_AT_ONCE // len(weight))


def chunks(rows: int, at_once: int) -> list[slice]:
    return [slice(start, min(start + at_once, rows)) for start in range(0, rows, at_once)]


def _cost_of(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    wanted: Tensor,
    wish: Wish,
    gradients: Gradients | None,
    rows: slice,
) -> Tensor:
    """Σ (log Z − (1−λ)(1−ε) wanted score − λ Σ_v a_v score_v), of a few rows; their share of the gradients is
    added on the way.

    ``weight`` may have been rounded: then ``x`` is too, wherever it meets it.
    """
    scores = scores_of(x, weight, bias)
    place = wanted[:, None]
    found = scores.gather(1, place)
    advised = None if wish.advice is None else torch.linalg.vecdot(wish.advice, scores)
    probabilities = torch.softmax(scores, 1, out=scores) if scores.is_cpu else torch.softmax(scores, 1)
    probability = probabilities.gather(1, place)
    cost = -probability.log()
    if float(probability.amin()) < _NEXT_TO_NOTHING:
        cost = scores_of(x, weight, bias).logsumexp(1, keepdim=True) - found
    if gradients is not None:
        slope = probabilities.scatter_add_(1, place, torch.full_like(found, -wish.wanted))
        if wish.advice is not None:
            slope.sub_(wish.advice, alpha=wish.taught)
        add_slope(slope, x, weight, gradients, gradients.x[rows])
    # log Z = cost + found. The mean scores, which smoothing takes off, come later.
    total = (cost + (1 - wish.wanted) * found).sum()
    return total if advised is None else total - wish.taught * advised.sum()


def scores_of(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if x.dtype == weight.dtype:
        return F.linear(x, weight, bias)
    scores = F.linear(rounded_rows(x, weight.dtype), weight)[: len(x)].to(x.dtype)
    return scores if bias is None else scores.add_(bias)


def add_slope(slope: Tensor, x: Tensor, weight: Tensor, gradients: Gradients, of_x: Tensor) -> None:
    """What the slope at the scores means for the factors, and for the bias."""
    if x.dtype == weight.dtype:
        torch.mm(slope, weight, out=of_x)
        gradients.weight.addmm_(slope.t(), x)
    else:
        rounded = rounded_rows(slope, weight.dtype)
        of_x.copy_(torch.mm(rounded, weight)[: len(x)])
        gradients.weight.add_(torch.mm(rounded.t(), rounded_rows(x, weight.dtype)))
    if gradients.bias is not None:
        gradients.bias.add_(slope.sum(0))


def sum_of_mean_scores(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Σ_rows mean_v score_v = mean_v(W) · Σ_rows x + rows · mean_v(b)."""
    total = weight.mean(0) @ x.sum(0)
    return total if bias is None else total + len(x) * bias.mean()


def smooth(gradients: Gradients, x: Tensor, weight: Tensor, smoothing: float) -> None:
    gradients.x.sub_(weight.mean(0), alpha=smoothing)
    gradients.weight.sub_(x.sum(0), alpha=smoothing / len(weight))
    if gradients.bias is not None:
        gradients.bias.sub_(smoothing * len(x) / len(weight))
