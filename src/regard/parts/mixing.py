"""All layers of a reader as one: a sum whose weights belong to the task (Peters et al. 2018 eq. 1)."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.core.tape import watching


class LayerMixSpec(Spec):
    norm: bool = False
    """Bring every layer to mean 0 and variance 1 first, where layers differ much in size (there, §3.2)."""

    def build(self, widths: Sequence[int]) -> "LayerMix":
        """``widths`` of the layers, the lowest first."""
        return LayerMix(self, widths)


class LayerMix(nn.Module):
    """γ Σ s_j h_j, where s = softmax(w); at first all layers weigh the same.

    A layer half as wide as the widest stands there twice: below two directions that are read apart, the
    vector of a word belongs to both.
    """

    def __init__(self, spec: LayerMixSpec, widths: Sequence[int]) -> None:
        super().__init__()
        self.norm, self.width = spec.norm, max(widths)
        for number, width in enumerate(widths):
            if self.width % width:
                raise UsageError(
                    f"layers are mixed that are one as wide as another, or part of it: the widest has "
                    f"{self.width} values, layer {number} has {width}"
                )
        self.weights = nn.Parameter(torch.zeros(len(widths)))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Float[Tensor, "batch time _"]]) -> Float[Tensor, "batch time width"]:
        shares = torch.softmax(self.weights, dim=0)
        watch = watching(self)
        if watch is not None:
            shares = watch("shares", shares)
        mixed = torch.zeros((), device=layers[0].device)
        for share, layer in zip(shares.unbind(0), layers, strict=True):
            x = F.layer_norm(layer, layer.shape[-1:]) if self.norm else layer
            mixed = mixed + share * x.repeat(1, 1, self.width // x.shape[-1])
        return self.scale * mixed
