"""Adagrad that remembers one number a row of a table and touches only rows that have a gradient.

A batch of text meets few of the words of a vocabulary: an optimiser that goes over the whole table would
spend nearly all of its time on rows that do not change.
"""

from collections.abc import Callable
from typing import Any, ClassVar, overload

import torch
from torch import Tensor


class RowwiseAdagrad(torch.optim.Optimizer):
    """w ← w − rate · g / √Σ g² (Duchi et al. 2011 eq. 1); of a row the mean over it counts as g².

    Parameters whose gradient is not by rows have a sum for every value.
    """

    by_rows: ClassVar[bool] = True

    def __init__(self, options: list[dict[str, Any]], eps: float) -> None:
        super().__init__(options, {"lr": 0.0, "eps": eps, "weight_decay": 0.0})

    @overload
    def step(self, closure: None = ...) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        assert closure is None, "gradients are made before"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                if weight.grad.is_sparse:
                    self._rows(weight, weight.grad, group)
                else:
                    self._whole(weight, weight.grad, group)
        return None

    def _rows(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        gradient = gradient.coalesce()
        (rows,), values = gradient.indices(), gradient.values()
        if group["weight_decay"]:
            values = values.add(weight[rows], alpha=group["weight_decay"])
        if "sum" not in self.state[weight]:
            self.state[weight]["sum"] = weight.new_zeros(len(weight))
        sums = self.state[weight]["sum"]
        # One way through the rows instead of two: the mean of squares from the length.
        now = sums[rows].add_(torch.linalg.vector_norm(values, dim=1).square_(), alpha=1 / values.shape[1])
        sums[rows] = now
        weight.index_add_(0, rows, values / now.sqrt().add_(group["eps"])[:, None], alpha=-group["lr"])

    def _whole(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            gradient = gradient.add(weight, alpha=group["weight_decay"])
        if "sum" not in self.state[weight]:
            self.state[weight]["sum"] = torch.zeros_like(weight)
        sums = self.state[weight]["sum"].addcmul_(gradient, gradient)
        weight.addcdiv_(gradient, sums.sqrt().add_(group["eps"]), value=-group["lr"])
