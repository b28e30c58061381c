"""Updates of matrices made orthogonal: every direction learns at one speed (Muon; Jordan et al. 2024).

Momentum of a weight matrix is dominated by few directions. Its nearest semi-orthogonal matrix, found by five
Newton–Schulz iterations, moves all of them alike. Vectors and tables (one row per word) are no maps from one
space to another and keep to Adam. torch's own Muon takes one matrix after another, in bfloat16; here all
matrices of one shape go through each product together, in the precision that other products with weights
have. A test keeps both equal.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.parts.linear import factor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""A polynomial that takes singular values in (0, 1] to about 1 quickly."""
_ITERATIONS = 5
_LONG = 2
"""How many times longer than wide a matrix must be for squares to pay."""
_EPS = 1e-7
_LIKE_ADAM = 0.2
"""Size of a typical Adam update per weight: one rate then serves both (Liu et al. 2025 §2.2)."""


def nearest_orthogonal(
    matrices: Float[Tensor, "many rows columns"], iterations: int = _ITERATIONS
) -> Float[Tensor, "many rows columns"]:
    """U Vᵀ of each U S Vᵀ, roughly: singular values end between 0.7 and 1.2."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp_min(_EPS)
    x = factor(x)
    # Squares of squares have no digits left where factors are rounded.
    by_squares = x.shape[2] >= _LONG * x.shape[1] and x.dtype == matrices.dtype
    x = (through_squares if by_squares else step_by_step)(x, iterations).to(matrices.dtype)
    return x.transpose(1, 2) if tall else x


def step_by_step(
    x: Float[Tensor, "many rows columns"], iterations: int
) -> Float[Tensor, "many rows columns"]:
    """X ← (a I + b G + c G²) X with G = X Xᵀ, as Jordan et al. write it."""
    a, b, c = _COEFFICIENTS
    for _ in range(iterations):
        gram = torch.bmm(x, x.transpose(1, 2))
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def through_squares(
    x: Float[Tensor, "many rows columns"], iterations: int
) -> Float[Tensor, "many rows columns"]:
    """The same, for matrices much longer than wide: with P = a I + b G + c G², G becomes P G P.

    So all iterations work on squares of the short side, and the long matrix is multiplied once, at the end.
    """
    a, b, c = _COEFFICIENTS
    gram, product = torch.bmm(x, x.transpose(1, 2)), None
    for number in range(iterations):
        step = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        step.diagonal(dim1=1, dim2=2).add_(a)
        product = step if product is None else torch.bmm(step, product)
        if number < iterations - 1:
            gram = torch.bmm(torch.bmm(step, gram), step)
    return x if product is None else torch.bmm(product, x)


class OrthogonalMomentum(torch.optim.Optimizer):
    """Groups with ``orthogonal`` set get orthogonal updates; the others are Adam's, decay on the weights."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        momentum: float,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        defaults = {"lr": 0.0, "weight_decay": 0.0, "momentum": momentum, "betas": betas, "eps": eps}
        super().__init__(groups, {**defaults, "orthogonal": False})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        assert closure is None, "the loss is computed once per step"
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if not weights:
                continue
            if group["weight_decay"]:
                torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            if group["orthogonal"]:
                self._turn(weights, group)
            else:
                self._adapt(weights, group)

    def _turn(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        gradients, memories = _gradients(weights), self._remembered(weights, "momentum_buffer")
        torch._foreach_lerp_(memories, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, memories, group["momentum"])  # Nesterov
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for place, weight in enumerate(weights):
            alike[tuple(weight.shape)].append(place)
        for shape, places in alike.items():
            updates = nearest_orthogonal(torch.stack([ahead[place] for place in places]))
            size = group["lr"] * _LIKE_ADAM * max(shape) ** 0.5
            torch._foreach_add_([weights[place] for place in places], list(updates.unbind(0)), alpha=-size)

    def _adapt(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        gradients = _gradients(weights)
        first, second = (self._remembered(weights, name) for name in ("exp_avg", "exp_avg_sq"))
        steps = [
            self.state[weight].setdefault("step", torch.zeros((), device=weight.device)) for weight in weights
        ]
        torch._foreach_add_(steps, 1.0)
        fast, slow = group["betas"]
        taken = float(steps[0])
        torch._foreach_lerp_(first, gradients, 1 - fast)
        torch._foreach_mul_(second, slow)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - slow)
        spread = torch._foreach_sqrt(second)
        torch._foreach_div_(spread, (1 - slow**taken) ** 0.5)
        torch._foreach_add_(spread, group["eps"])
        torch._foreach_addcdiv_(weights, first, spread, -group["lr"] / (1 - fast**taken))

    def _remembered(self, weights: list[Tensor], name: str) -> list[Tensor]:
        return [
            self.state[weight].setdefault(name, torch.zeros_like(weight, memory_format=torch.preserve_format))
            for weight in weights
        ]


def _gradients(weights: list[Tensor]) -> list[Tensor]:
    return [weight.grad for weight in weights if weight.grad is not None]
