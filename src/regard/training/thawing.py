"""Which layers learn, how fast and from when on: freezing, discriminative rates, gradual unfreezing.

Depth counts from the embedding (0) over the layers (1, 2, …) to what stands on top of them.
"""

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import nn

from regard.core.errors import UsageError
from regard.core.spec import Spec

_LAYER = re.compile(r"\.layers\.(\d+)\.")
_SPELLS = ".embedding.spelling."
_READS = re.compile(r"(^|\.)(encoder|decoder)\.(embedding(?!\.letters\.)|stack)\.")
"""Letters that are added to a reader's vectors are as new as what stands on top of it."""


class ThawingSpec(Spec):
    freeze: Literal["none", "all", "embeddings", "gradual"] = "none"
    """What of a reader stays as it is: nothing, all of it, its table of words; or all of it at first, and one
    layer less with every epoch, the last layer first (Howard and Ruder 2018 §3.3)."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Rate of each layer as a share of that of the one above it (there: 1/2.6)."""

    def rate(self, depth: int, top: int) -> float:
        return float(self.layer_decay ** (top - depth))

    def frozen(self, depth: int, top: int, epoch: int, spelled: bool = False, reads: bool = True) -> bool:
        """``spelled``: belongs to what makes vectors of letters, which no table of words is; ``reads``: to a
        reader, and not to what stands on top of it."""
        match self.freeze:
            case "all":
                return reads
            case "embeddings":
                return depth == 0 and not spelled
            case "gradual":
                return depth < top - epoch
            case _:
                return False


def depths_of(model: nn.Module) -> dict[str, int]:
    """Of every parameter, by name; the highest is what stands on top."""
    names = [name for name, _ in model.named_parameters()]
    layers = [int(found[1]) + 1 for name in names if (found := _LAYER.search(name))]
    last = max(layers, default=0)
    return {name: _depth(name, last) for name in names}


def _depth(name: str, last: int) -> int:
    if not _READS.search(name):
        return last + 1
    if (layer := _LAYER.search(name)) is not None:
        return int(layer[1]) + 1
    return 0 if ".embedding." in name else last


class Thawing:
    """Freezes and thaws the parameters of a model as epochs go by; a pure function of the epoch."""

    def __init__(self, spec: ThawingSpec, model: nn.Module) -> None:
        self.spec, self.depths = spec, depths_of(model)
        self.top = max(self.depths.values(), default=0)
        # What was frozen before is none of our business.
        self._own: Mapping[str, nn.Parameter] = {
            name: weight for name, weight in model.named_parameters() if weight.requires_grad
        }
        if self._own and all(self._frozen(name, epoch=0) for name in self._own):
            raise UsageError(
                f"training.thawing.freeze={spec.freeze}: nothing is left to train, since this model is all "
                "reader and has nothing on top of it: none"
            )

    def rates(self) -> dict[str, float]:
        """Shares of the scheduled rate, by name."""
        return {name: self.spec.rate(depth, self.top) for name, depth in self.depths.items()}

    def at(self, epoch: int) -> None:
        if self.spec.freeze == "none":
            return
        for name, weight in self._own.items():
            weight.requires_grad_(not self._frozen(name, epoch))

    def _frozen(self, name: str, epoch: int) -> bool:
        reads = _READS.search(name) is not None
        return self.spec.frozen(self.depths[name], self.top, epoch, _SPELLS in name, reads)

    def end(self) -> None:
        """As it was."""
        for weight in self._own.values():
            weight.requires_grad_(True)
