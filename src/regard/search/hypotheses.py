"""What a search finds, and how hypotheses of different lengths are compared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Hypothesis:
    tokens: list[int]
    """Without the begin token and without the end token."""
    finished: bool
    """Whether it ended by itself; False when it was cut off or nothing could follow."""
    log_prob: float
    """Sum of ``token_log_probs``: what the model itself says, whatever the constraints did."""
    score: float
    """What the search ranked it by: after length normalisation and any penalties."""
    token_log_probs: list[float]
    """One for each token and, when finished, one more for the end."""

    def detailed(self, token_log_probs: Sequence[float]) -> "Hypothesis":
        """The same, now that they are known."""
        own = list(token_log_probs)
        return replace(self, token_log_probs=own, log_prob=sum(own))


Found: TypeAlias = list[list[Hypothesis]]
"""For each sentence its hypotheses, best first. There is always at least one."""

Number = TypeVar("Number", float, Tensor)


def normalise(log_prob: Number, length: int, alpha: float) -> Number:
    """log P(y) / |y|^α. The end token counts in |y|, so the empty answer has length 1.

    α = 0 compares plain log-probabilities and favours short answers; α = 1 compares the mean per token.
    """
    return log_prob / math.pow(max(1, length), alpha)
