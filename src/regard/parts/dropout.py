"""Switch off a random share of the values and scale up the rest (Srivastava et al. 2014).

The readable path is ``torch.nn.functional.dropout``. On a processor it draws one double per value from a
Mersenne Twister on one thread, which was a sixth of a training step. The cheap path draws sixteen bits per
value from SFC64, seeded by torch's generator: whoever sets torch's seed decides these bits too.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.randomness import current_generator

_LEVELS = 1 << 16
_WORD = 1 << 62


def dropout(x: Float[Tensor, "*shape"], share: float) -> Float[Tensor, "*shape"]:
    """Each value is zero with probability ``share``, up to 2⁻¹⁷; the expectation of each stays what it is."""
    if share == 0.0:
        return x
    if not x.is_cpu:
        return F.dropout(x, share)
    return x * keep_mask(x, share)


def add_dropped(
    x: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"], share: float
) -> Float[Tensor, "*shape"]:
    """x + dropout(y), in one pass over the memory."""
    if share == 0.0 or not y.is_cpu:
        return x + dropout(y, share)
    return torch.addcmul(x, y, keep_mask(y, share))


def keep_mask(x: Float[Tensor, "*shape"], share: float) -> Float[Tensor, "*shape"]:
    """Zero where a value is dropped, and one over the share that is kept elsewhere."""
    dropped = round(share * _LEVELS)
    if dropped == _LEVELS:
        return torch.zeros_like(x)
    seed = int(torch.randint(_WORD, (), generator=current_generator()))
    words = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
    noise = torch.from_numpy(words.view(np.int16)[: x.numel()]).view(x.shape)
    # float32 holds every level; comparing in place is what torch vectorises.
    kept = noise.float().ge_(dropped - _LEVELS // 2)
    return kept.mul_(_LEVELS / (_LEVELS - dropped)).to(x.dtype)


class Dropout(nn.Module):
    """Only while training."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return dropout(x, self.share) if self.training else x

    def add(self, x: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """x + dropout(y)."""
        return add_dropped(x, y, self.share) if self.training else x + y

    def extra_repr(self) -> str:
        return f"{self.share}"


class LockedDropout(Dropout):
    """The same values are switched off at all times of a row (Gal and Ghahramani 2016)."""

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        if not self.training or self.share == 0.0:
            return x
        return x * dropout(torch.ones_like(x[:, :1]), self.share)


def without_some(table: Float[Tensor, "words width"], share: float) -> Float[Tensor, "words width"]:
    """A table of words some of which are switched off whole (Gal and Ghahramani 2016 §4.2)."""
    return table * dropout(torch.ones_like(table[:, :1]), share)
