"""Norms: keep the size of vectors in hand."""

from typing import ClassVar

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.spec import Spec


class NormSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "layer": "regard.parts.norms:LayerNormSpec",
        "rms": "regard.parts.norms:RootMeanSquareSpec",
    }

    def build(self, width: int) -> nn.Module:
        raise NotImplementedError


class LayerNormSpec(NormSpec):
    epsilon: float = Field(default=1e-5, gt=0)

    def build(self, width: int) -> nn.Module:
        return nn.LayerNorm(width, eps=self.epsilon)


class RootMeanSquareSpec(NormSpec):
    epsilon: float = Field(default=1e-6, gt=0)

    def build(self, width: int) -> nn.Module:
        return nn.RMSNorm(width, eps=self.epsilon)


def layer_norm(
    x: Float[Tensor, "*rows width"],
    gain: Float[Tensor, "width"],
    shift: Float[Tensor, "width"],
    epsilon: float,
) -> Float[Tensor, "*rows width"]:
    """a (x−μ)/√(σ²+ε) + b, as Ba et al. 2016 write it; ``nn.LayerNorm`` runs, this explains it."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return gain * centred / (variance + epsilon).sqrt() + shift
