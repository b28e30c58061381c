"""How training ends."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from torch import nn

Validate: TypeAlias = Callable[[nn.Module], dict[str, float]]
"""Scores of a model in evaluation mode; "loss" is always among them."""


class TrainingResult(NamedTuple):
    """What was reached; the model holds the best weights."""

    step: int
    reason: str
    """What was used up: "steps", "minutes" or "patience"; "counted" where there is nothing to use up."""
    watch: str
    best: float
    """The best value of ``watch``."""
    best_step: int
    variant: str
    """Which weights were best: "trained", "ema" or "average"."""
    scores: dict[str, float]
    """All validation scores of the best weights."""
    seconds: float
