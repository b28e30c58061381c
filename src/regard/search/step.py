"""The one thing a search knows about a model: its next-token log-probabilities, one token at a time."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.state import State


@runtime_checkable
class Step(Protocol):
    """Feed exactly one new token per row; get the log-probabilities of the next one.

    ``state`` is any batch-first tree (``core.state``); a search drops, repeats and reorders its rows between
    calls. The function must be pure, and rows must not influence one another. Log-probabilities may be
    -inf (impossible), never NaN.
    """

    def __call__(
        self, tokens: Int[Tensor, "rows"], state: State
    ) -> tuple[Float[Tensor, "rows vocabulary"], State]: ...


Combine: TypeAlias = Callable[
    [Float[Tensor, "models rows vocabulary"], Float[Tensor, "models"]],
    Float[Tensor, "rows vocabulary"],
]
"""Several distributions and their weights (which sum to one) → one distribution, all as logarithms."""


def mean_probability(
    log_probs: Float[Tensor, "models rows vocabulary"], weights: Float[Tensor, "models"]
) -> Float[Tensor, "rows vocabulary"]:
    """log Σ wₘ pₘ: a token that any one model finds likely stays likely."""
    return torch.logsumexp(log_probs + weights.log()[:, None, None], dim=0)


def mean_log_probability(
    log_probs: Float[Tensor, "models rows vocabulary"], weights: Float[Tensor, "models"]
) -> Float[Tensor, "rows vocabulary"]:
    """log Π pₘ^wₘ, made to sum to one again: a token that any one model rules out is ruled out."""
    return torch.log_softmax((log_probs * weights[:, None, None]).sum(0), dim=-1)


class Ensemble:
    """Several models with one vocabulary, searched as if they were one. The state is a tuple of theirs."""

    def __init__(
        self,
        steps: Sequence[Step],
        weights: Sequence[float] | None = None,
        combine: Combine = mean_probability,
    ) -> None:
        weights = [1.0] * len(steps) if weights is None else list(weights)
        if not steps or len(weights) != len(steps):
            raise UsageError(f"an ensemble of {len(steps)} models was given {len(weights)} weights")
        if min(weights) <= 0:
            raise UsageError(f"weights of an ensemble must be positive, got {weights}")
        self.steps = tuple(steps)
        self.weights = [weight / sum(weights) for weight in weights]
        self.combine = combine

    def __call__(
        self, tokens: Int[Tensor, "rows"], state: State
    ) -> tuple[Float[Tensor, "rows vocabulary"], State]:
        answers = [one(tokens, own) for one, own in zip(self.steps, state, strict=True)]
        sizes = {log_probs.shape[1] for log_probs, _ in answers}
        if len(sizes) > 1:
            raise UsageError(f"models of an ensemble need one vocabulary, got sizes {sorted(sizes)}")
        log_probs = torch.stack([log_probs for log_probs, _ in answers])
        weights = torch.tensor(self.weights, dtype=log_probs.dtype, device=log_probs.device)
        return self.combine(log_probs, weights), tuple(after for _, after in answers)
