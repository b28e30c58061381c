"""Means of weights over time, which often generalise better than the last ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.core.errors import RunError
from regard.training.weights import read_weights


class MovingAverage:
    """Exponential moving average of weights.

    After t updates it is Σ decay^(t-i) · w_i / Σ decay^(t-i): normalised as Adam normalises its moments, so
    the random weights before the first step have no share in it.
    """

    def __init__(self, decay: float, weights: Mapping[str, Tensor]) -> None:
        self.decay = decay
        self.weights = {name: tensor.detach().clone() for name, tensor in weights.items()}

    def update(self, weights: Mapping[str, Tensor], step: int) -> None:
        """Take in the weights after ``step`` (1, 2, 3, …)."""
        share = (1 - self.decay) / (1 - self.decay**step)
        floating = [name for name, tensor in self.weights.items() if tensor.is_floating_point()]
        torch._foreach_lerp_(
            [self.weights[name] for name in floating], [weights[name] for name in floating], share
        )
        for name, tensor in self.weights.items():
            if not tensor.is_floating_point():
                tensor.copy_(weights[name])

    def load(self, stored: Mapping[str, Tensor]) -> None:
        for name, tensor in self.weights.items():
            tensor.copy_(stored[name])


def average_last(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights in several sealed files, added up in double precision."""
    totals: dict[str, Tensor] = {}
    newest: dict[str, Tensor] = {}
    for path in paths:
        newest = read_weights(path)
        if totals and totals.keys() != newest.keys():
            raise RunError(f"{path}: holds other weights than {paths[0]}: they cannot be averaged")
        for name, tensor in newest.items():
            totals[name] = totals[name] + tensor.double() if name in totals else tensor.double()
    return {
        name: (totals[name] / len(paths)).to(tensor.dtype) if tensor.is_floating_point() else tensor
        for name, tensor in newest.items()
    }
