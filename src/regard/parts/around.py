"""The mean of what stands around each place of a line.

Whom a place looks at is told by distance: column d of ``near`` is the place d − radius away. So a line of n
places needs n (2 radius + 1) marks, and nothing is multiplied by the zeros of a matrix over pairs of places.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def mean_around(
    line: Float[Tensor, "places width"], near: Bool[Tensor, "asked distances"]
) -> Float[Tensor, "asked width"]:
    """Of the places that each looks at; zero of none. ``line`` has ``radius`` places more at both ends."""
    means: Tensor = _MeanAround.apply(line, near)  # type: ignore[no-untyped-call]
    return means


def readable_mean_around(
    line: Float[Tensor, "places width"], near: Bool[Tensor, "asked distances"]
) -> Float[Tensor, "asked width"]:
    """The same as a product with a matrix that is nearly all zeros."""
    looks = by_place(near[None])[0].to(line.dtype)
    return looks @ line / looks.sum(1, keepdim=True).clamp(min=1)


def by_place(near: Bool[Tensor, "groups group distances"]) -> Bool[Tensor, "groups group span"]:
    """Whom each of a group looks at, by where that stands in the group and around it."""
    groups, group, distances = near.shape
    span = group + distances - 1
    found = near.new_zeros(groups, group, span)
    # One further in the group is one further in the span: distances lie along a diagonal.
    found.as_strided(near.shape, (group * span, span + 1, 1)).copy_(near)
    return found


class _MeanAround(torch.autograd.Function):
    """A sum of a few rows with weights, and back by another: who is looked at, by whom."""

    @staticmethod
    def forward(ctx: Any, line: Tensor, near: Tensor) -> Tensor:
        weights = near.to(line.dtype)
        weights /= weights.sum(1, keepdim=True).clamp_(min=1)
        ctx.save_for_backward(weights)
        places = torch.arange(len(line), device=line.device)
        # Detached: the gradient is ours, and what torch keeps for one of its own takes time.
        return _sums(line.detach(), places.unfold(0, near.shape[1], 1), weights)

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        asked, distances = weights.shape
        reach = distances - 1
        # Place p is at distance d from the one who stands at p − d: a diagonal of the weights.
        padded = F.pad(weights, (0, 0, reach, reach))
        seen = padded.as_strided((asked + reach, distances), (distances, reach), reach)
        who = torch.arange(-reach, asked + reach, device=weights.device).clamp_(0, asked - 1)
        return _sums(incoming[0], who.unfold(0, distances, 1), seen.contiguous()), None


def _sums(
    rows: Float[Tensor, "rows width"],
    index: Int[Tensor, "sums terms"],
    weights: Float[Tensor, "sums terms"],
) -> Float[Tensor, "sums width"]:
    return F.embedding_bag(index.contiguous(), rows, mode="sum", per_sample_weights=weights)
