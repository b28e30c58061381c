"""What one step after another multiplies by: a recurrence's weights, a memory looked at again and again.

Autograd makes the gradient of such an operand at every step and adds it to those before, a pass over all of
its memory each time. Here every step only leaves what belongs in that gradient, and it is made once, after
the last step, in one product over all times. Weights are also rounded once (``core/precision``), not at every
step.

The readable twins are ``linear`` and ``@``.
"""

from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.core.precision import rounded_to
from regard.parts.linear import linear, more_rows, rounded_rows


@runtime_checkable
class Ledger(Protocol):
    """What steps leave while gradients go back through them."""

    def close(self) -> Tensor:
        """The gradient of what they share."""


def shared(operand: Float[Tensor, "*shape"], ledger: Ledger) -> Float[Tensor, "*shape"]:
    """``operand`` for steps that leave their share of its gradient in ``ledger`` and hand none back."""
    same: Tensor = _Shared.apply(operand, ledger)  # type: ignore[no-untyped-call]
    return same


class _Shared(torch.autograd.Function):
    """Goes back after all steps that used it: then the ledger is complete."""

    @staticmethod
    def forward(ctx: Any, operand: Tensor, ledger: Ledger) -> Tensor:
        ctx.ledger = ledger
        ctx.set_materialize_grads(False)
        return operand.view_as(operand)

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor, None]:
        return ctx.ledger.close(), None


class Weights:
    """W x + b for one x after another."""

    def __init__(self, weight: Float[Tensor, "out width"], bias: Float[Tensor, "out"] | None = None) -> None:
        self._weight, self._bias = weight, bias
        self._learn = torch.is_grad_enabled() and weight.requires_grad
        if self._learn:
            self._ledger = _Products(rounded_to())
            self._factor, self._bias = _Opened.apply(weight, bias, self._ledger)  # type: ignore[no-untyped-call]

    def __call__(self, x: Float[Tensor, "rows width"]) -> Float[Tensor, "rows out"]:
        if not self._learn:
            return linear(x, self._weight, self._bias)
        product: Tensor = _Product.apply(x, self._factor, self._bias, self._ledger)  # type: ignore[no-untyped-call]
        return product


class _Products:
    """Factors of the gradient of weights, time by time, the last one first."""

    def __init__(self, dtype: torch.dtype | None) -> None:
        self.dtype = dtype
        self._given: list[Tensor] = []
        self._slopes: list[Tensor] = []
        self._of_bias: Tensor | None = None

    def factor(self, x: Tensor) -> Tensor:
        return x if self.dtype is None else rounded_rows(x, self.dtype)

    def note(self, given: Tensor, slopes: Tensor) -> None:
        # What remembers how it was made would keep that, and so this ledger, for ever.
        self._given.append(given.detach())
        self._slopes.append(slopes)

    def note_bias(self, slopes: Tensor) -> None:
        here = slopes.sum(0)
        self._of_bias = here if self._of_bias is None else self._of_bias.add_(here)

    def close(self) -> tuple[Tensor, Tensor | None]:
        slopes, given = self._joined(self._slopes), self._joined(self._given)
        return torch.mm(slopes.t(), given), self._of_bias

    def _joined(self, parts: list[Tensor]) -> Tensor:
        rows = sum(map(len, parts))
        if self.dtype is not None and (more := more_rows(rows)):
            parts = [*parts, parts[0].new_zeros(more, parts[0].shape[1])]
        return torch.cat(parts)


class _Opened(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor | None, ledger: _Products
    ) -> tuple[Tensor, Tensor | None]:
        ctx.ledger, ctx.kept_as = ledger, weight.dtype
        ctx.set_materialize_grads(False)
        factor = weight.view_as(weight) if ledger.dtype is None else weight.to(ledger.dtype)
        return factor, None if bias is None else bias.view_as(bias)

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor | None, ...]:
        of_weight, of_bias = ctx.ledger.close()
        return of_weight.to(ctx.kept_as), of_bias, None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor, bias: Tensor | None, ledger: _Products) -> Tensor:
        given = ledger.factor(x)
        ctx.ledger, ctx.has_bias = ledger, bias is not None
        ctx.save_for_backward(given, factor)
        if ledger.dtype is None:
            return F.linear(given, factor, bias)
        product = F.linear(given, factor)[: len(x)].to(x.dtype)
        return product if bias is None else product.add_(bias)

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        (given, factor), (incline,) = ctx.saved_tensors, incoming
        slopes = ctx.ledger.factor(incline)
        ctx.ledger.note(given, slopes)
        if ctx.has_bias:
            ctx.ledger.note_bias(incline)
        of_x = torch.mm(slopes, factor)[: len(incline)].to(incline.dtype) if ctx.needs_input_grad[0] else None
        return of_x, None, None, None


class Values:
    """weights @ values for one time's weights after another."""

    def __init__(self, values: Float[Tensor, "batch heads key value"]) -> None:
        self._learn = torch.is_grad_enabled() and values.requires_grad
        self._ledger = _Readings()
        self._values = shared(values, self._ledger) if self._learn else values

    def __call__(
        self, weights: Float[Tensor, "batch heads query key"]
    ) -> Float[Tensor, "batch heads query value"]:
        if not self._learn:
            return weights @ self._values
        found: Tensor = _Reading.apply(weights, self._values, self._ledger)  # type: ignore[no-untyped-call]
        return found


class _Readings:
    """Σ_t weights_tᵀ slopes_t is one product with the times side by side."""

    def __init__(self) -> None:
        self._weights: list[Tensor] = []
        self._slopes: list[Tensor] = []

    def note(self, weights: Tensor, slopes: Tensor) -> None:
        self._weights.append(weights.detach())
        self._slopes.append(slopes)

    def close(self) -> Tensor:
        return torch.cat(self._weights, 2).transpose(-1, -2) @ torch.cat(self._slopes, 2)


class _Reading(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, ledger: _Readings) -> Tensor:
        ctx.ledger = ledger
        ctx.save_for_backward(weights, values)
        return weights @ values

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        (weights, values), (slopes,) = ctx.saved_tensors, incoming
        ctx.ledger.note(weights, slopes)
        return slopes @ values.transpose(-1, -2), None, None
