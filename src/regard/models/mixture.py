"""Several models with one vocabulary as if they were one: p = Σ wₘ pₘ.

Interpolation of an n-gram with a network, an ensemble of translators: whatever each is inside, the mixture
starts, reads and steps as its members do. Its state, and what it knows at a position, are tuples of theirs.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.core.state import State


class Mixture(nn.Module):
    log_weights: Tensor

    def __init__(self, models: Sequence[nn.Module], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        weights = [1.0] * len(models) if weights is None else list(weights)
        if not models or len(weights) != len(models) or min(weights) <= 0:
            raise UsageError(f"a mixture of {len(models)} needs as many positive weights, got {weights}")
        shares = torch.tensor(weights) / sum(weights)
        self.models = nn.ModuleList(models)
        self.register_buffer("log_weights", shares.log(), persistent=False)

    @property
    def longest(self) -> int | None:
        return self._shortest("longest")

    @property
    def longest_source(self) -> int | None:
        return self._shortest("longest_source")

    @property
    def longest_target(self) -> int | None:
        return self._shortest("longest_target")

    def start(self, given: Tokens | int) -> State:
        """``given`` is what its members start from: a source, or a number of rows."""
        return tuple(cast(Any, model).start(given) for model in self.models)

    def read(self, tokens: Tokens, state: State) -> tuple[Any, State]:
        read = [
            cast(Any, model).read(tokens, before) for model, before in zip(self.models, state, strict=True)
        ]
        return tuple(x for x, _ in read), tuple(after for _, after in read)

    def predict(self, x: Sequence[Any]) -> Float[Tensor, "*rows vocabulary"]:
        """Log-probabilities: they are their own logits."""
        return self._mixed(
            [cast(Any, model).predict(own).log_softmax(-1) for model, own in zip(self.models, x, strict=True)]
        )

    def log_probs_of(self, x: Sequence[Any], wanted: Int[Tensor, "rows"]) -> Float[Tensor, "rows"]:
        return self._mixed(
            [cast(Any, model).log_probs_of(own, wanted) for model, own in zip(self.models, x, strict=True)]
        )

    def step(
        self, tokens: Int[Tensor, "rows"], state: State
    ) -> tuple[Float[Tensor, "rows vocabulary"], State]:
        taken = [
            cast(Any, model).step(tokens, before) for model, before in zip(self.models, state, strict=True)
        ]
        return self._mixed([log_probs for log_probs, _ in taken]), tuple(after for _, after in taken)

    def _mixed(self, log_probs: Sequence[Tensor]) -> Tensor:
        """log Σ wₘ pₘ: what any one member finds likely stays likely."""
        stacked = torch.stack(list(log_probs), dim=-1) + self.log_weights
        return stacked.logsumexp(-1)

    def _shortest(self, limit: str) -> int | None:
        known = [own for model in self.models if (own := getattr(model, limit)) is not None]
        return min(known, default=None)
