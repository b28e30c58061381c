"""Optimisers, their state by parameter name, and gradients of several batches as one."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import RunError, UsageError
from regard.core.spec import Spec
from regard.heads.vocabulary import Vocabulary
from regard.training.orthogonal import OrthogonalMomentum
from regard.training.rows import RowwiseAdagrad

Beta = Annotated[float, Field(ge=0, lt=1)]


class Group(NamedTuple):
    """Parameters that are updated alike."""

    parameters: list[nn.Parameter]
    decays: bool
    maps: bool = False
    """Matrices from one space to another; tables with a row per word are none."""
    rate: float = 1.0
    """This group's share of the scheduled rate (discriminative rates; Howard & Ruder 2018)."""


def groups_of(model: nn.Module, rates: Mapping[str, float] | None = None) -> list[Group]:
    """Maps and tables with decay, vectors (biases, norms) without: shrinking those regularises nothing.

    ``rates`` are shares of the scheduled rate, by name of the parameter.
    """
    trained = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    if not trained:
        raise UsageError("the model has no parameter to train: all are frozen, or there is none")
    tables = {module.weight for module in model.modules() if isinstance(module, nn.Embedding)}
    tables |= {module.words.weight for module in model.modules() if isinstance(module, Vocabulary)}
    found: dict[tuple[bool, bool, float], list[nn.Parameter]] = {}
    for name, weight in trained:
        decays = weight.ndim >= 2 and not name.endswith("bias")
        maps = decays and weight.ndim == 2 and weight not in tables
        rate = 1.0 if rates is None else rates[name]
        found.setdefault((decays, maps, rate), []).append(weight)
    return [Group(weights, *kind) for kind, weights in sorted(found.items(), reverse=True)]


class OptimiserSpec(Spec):
    """How gradients become updates; the rate comes from the schedule."""

    kinds: ClassVar[dict[str, str]] = {
        "adam": "regard.training.optimisation:Adam",
        "adamw": "regard.training.optimisation:AdamW",
        "sgd": "regard.training.optimisation:SGD",
        "muon": "regard.training.optimisation:Muon",
        "row_adagrad": "regard.training.optimisation:RowAdagrad",
    }

    weight_decay: float = Field(default=0.0, ge=0)
    """Pull towards zero; never on biases, norms and other vectors."""

    def build(self, groups: Sequence[Group]) -> torch.optim.Optimizer:
        """One fused kernel over all parameters where torch has one for their device."""
        options: list[dict[str, Any]] = [
            {
                "params": group.parameters,
                "weight_decay": self.weight_decay if group.decays else 0.0,
                "scale": group.rate,
                "orthogonal": group.maps,
            }
            for group in groups
        ]
        try:
            return self.make(options, fused=True)
        except RuntimeError:
            return self.make(options, fused=False)

    @abstractmethod
    def make(self, options: list[dict[str, Any]], fused: bool) -> torch.optim.Optimizer:
        """The torch optimiser over these parameter groups."""


class Adam(OptimiserSpec):
    """Kingma & Ba 2015; decay, if any, is added to the gradient."""

    betas: tuple[Beta, Beta] = (0.9, 0.98)
    """Memory of the first and second moment."""
    eps: float = Field(default=1e-9, gt=0)
    """Keeps the division finite."""

    def make(self, options: list[dict[str, Any]], fused: bool) -> torch.optim.Optimizer:
        return torch.optim.Adam(options, lr=0.0, betas=self.betas, eps=self.eps, fused=fused)


class AdamW(Adam):
    """Loshchilov & Hutter 2019: decay straight on the weights."""

    weight_decay: float = Field(default=0.01, ge=0)
    """Pull towards zero, times the rate; never on biases, norms and other vectors."""

    def make(self, options: list[dict[str, Any]], fused: bool) -> torch.optim.Optimizer:
        return torch.optim.AdamW(options, lr=0.0, betas=self.betas, eps=self.eps, fused=fused)


class SGD(OptimiserSpec):
    """Plain gradient descent, with momentum if asked for."""

    momentum: float = Field(default=0.0, ge=0, lt=1)
    """Share of the last update that is repeated."""

    def make(self, options: list[dict[str, Any]], fused: bool) -> torch.optim.Optimizer:
        return torch.optim.SGD(options, lr=0.0, momentum=self.momentum, fused=fused)


class Muon(OptimiserSpec):
    """Orthogonal updates of matrices (Jordan et al. 2024), Adam for tables and vectors, at one rate."""

    weight_decay: float = Field(default=0.0, ge=0)
    """Pull towards zero, times the rate; never on biases, norms and other vectors."""
    momentum: Beta = 0.95
    """Memory of the gradients of matrices."""
    betas: tuple[Beta, Beta] = (0.9, 0.98)
    """Memory of the first and second moment of all others."""
    eps: float = Field(default=1e-9, gt=0)
    """Keeps the division finite."""

    def make(self, options: list[dict[str, Any]], fused: bool) -> torch.optim.Optimizer:
        return OrthogonalMomentum(options, self.momentum, self.betas, self.eps)


class RowAdagrad(OptimiserSpec):
    """Duchi et al. 2011, with one memory a row of a table: only rows that occurred are touched."""

    eps: float = Field(default=1e-10, gt=0)
    """Keeps the division finite."""

    def make(self, options: list[dict[str, Any]], fused: bool) -> torch.optim.Optimizer:
        return RowwiseAdagrad(options, self.eps)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate * group["scale"]


def weights_of(optimiser: torch.optim.Optimizer) -> list[nn.Parameter]:
    """All that it updates now: what is frozen waits."""
    return [weight for group in optimiser.param_groups for weight in group["params"] if weight.requires_grad]


def gradients_of(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """The gradients at hand, to be changed in place; parameters that took no part have none.

    Of a table of which only some rows took part, the gradients of those; for an optimiser that does not go
    by rows, the table is filled up with zeros.
    """
    by_rows = getattr(optimiser, "by_rows", False)
    found = list[Tensor]()
    for weight in weights_of(optimiser):
        if weight.grad is not None and weight.grad.is_sparse:
            weight.grad = weight.grad.coalesce() if by_rows else weight.grad.to_dense()
        if weight.grad is not None:
            found.append(weight.grad._values() if weight.grad.is_sparse else weight.grad)
    return found


def add_gradients(weights: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """Add to what the weights hold; None is nothing.

    A gradient becomes the weight's own, to be changed in place; one that is spread over several places, or
    is another's too (that of b in a + b is that of a), is copied first.
    """
    sums, added, owned = [], [], set()
    for weight, gradient in zip(weights, gradients, strict=True):
        if gradient is None:
            continue
        if gradient.is_sparse:
            weight.grad = gradient if weight.grad is None else weight.grad + gradient
        elif weight.grad is None:
            alone = gradient.is_contiguous() and gradient.data_ptr() not in owned
            weight.grad = gradient if alone else gradient.clone(memory_format=torch.contiguous_format)
            owned.add(gradient.data_ptr())
        else:
            sums.append(weight.grad)
            added.append(gradient)
    if sums:
        torch._foreach_add_(sums, added)


def scale_gradients(gradients: Sequence[Tensor], count: int, norm: float, clip: float | None) -> None:
    """From sums over ``count`` predictions to means, and down to global norm ``clip`` if ``norm`` is above.

    ``norm`` is that of the means (Pascanu et al. 2013, §3.2). One pass over the memory does both.
    """
    shrink = 1.0 if clip is None or norm <= clip else clip / norm
    torch._foreach_mul_(list(gradients), shrink / count)


def is_finite(*values: float) -> bool:
    return all(math.isfinite(value) for value in values)


def optimiser_tensors(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Its whole memory as ``<parameter name>.<what>``: names outlive the order of parameters."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        for what, value in optimiser.state.get(parameter, {}).items():
            if value is None:
                continue
            assert isinstance(value, Tensor), f"{name}.{what} must be a tensor to be stored"
            tensors[f"{name}.{what}"] = value
    return tensors


def load_optimiser(
    optimiser: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor], where: Path
) -> None:
    """Put back what ``optimiser_tensors`` took out. ``where`` is named in errors."""
    by_name: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        name, _, what = key.rpartition(".")
        by_name.setdefault(name, {})[what] = value
    names = {parameter: name for name, parameter in model.named_parameters()}
    unknown = sorted(set(by_name) - set(names.values()))
    if unknown:
        raise RunError(
            f"{where}: holds state of parameters the model does not have: {', '.join(unknown[:8])}"
        )
    ordered = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    state = {index: by_name[names[p]] for index, p in enumerate(ordered) if names[p] in by_name}
    # Through torch's own loading, which knows what must lie on which device.
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
