"""Many vectors into one: what a bridge, a classifier or a sentence embedding reads."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.core.spec import Spec


class PoolingSpec(Spec):
    """A function, without parameters, from the states of a sequence to one vector."""

    kinds: ClassVar[dict[str, str]] = {
        "first": "regard.parts.pooling:FirstSpec",
        "last": "regard.parts.pooling:LastSpec",
        "ends": "regard.parts.pooling:EndsSpec",
        "mean": "regard.parts.pooling:MeanSpec",
        "max": "regard.parts.pooling:MaxSpec",
        "several": "regard.parts.pooling:SeveralSpec",
    }

    def width(self, width: int) -> int:
        """Of the one vector, where states are so wide."""
        return width

    def pool(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch width"]:
        raise NotImplementedError


class FirstSpec(PoolingSpec):
    """The first position: [CLS]."""

    def pool(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch width"]:
        return x[:, 0]


class LastSpec(PoolingSpec):
    """The last real position: what a left-to-right reader knows at the end."""

    def pool(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch width"]:
        last = (real.sum(1) - 1).clamp_min(0)
        return x[torch.arange(x.shape[0], device=x.device), last]


class EndsSpec(PoolingSpec):
    """Each direction of a bidirectional reader where it ends: first half last, second half first."""

    def pool(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch width"]:
        half = x.shape[-1] // 2
        return torch.cat((LastSpec().pool(x, real)[:, :half], x[:, 0, half:]), dim=-1)


class MeanSpec(PoolingSpec):
    def pool(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch width"]:
        kept = real[..., None].to(x.dtype)
        return (x * kept).sum(1) / kept.sum(1).clamp_min(1)


class MaxSpec(PoolingSpec):
    def pool(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch width"]:
        return x.masked_fill(~real[..., None], torch.finfo(x.dtype).min).amax(1)


class SeveralSpec(PoolingSpec):
    """One after another: concat pooling is last, max and mean (Howard and Ruder 2018 eq. 4)."""

    parts: tuple[PoolingSpec, ...] = (LastSpec(), MaxSpec(), MeanSpec())

    def width(self, width: int) -> int:
        return sum(part.width(width) for part in self.parts)

    def pool(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch pooled"]:
        return torch.cat([part.pool(x, real) for part in self.parts], dim=-1)


class SummingUpSpec(Spec):
    """How the states of a text become one vector."""

    pooling: PoolingSpec | None = MeanSpec()
    """Over its tokens; null: by the model's own layer over the first state."""
    layer: int | None = -1
    """0: what goes into the first layer, 1: what comes out of it, …; -1: the last; null: all averaged, the
    scalar mix of Peters et al. 2018 (eq. 1) before anything is learned."""
    normalise: bool = False
    """Make every vector one long."""
