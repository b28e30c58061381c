"""The one thing a search knows about a model: its next-token log-probabilities, one token at a time."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

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
