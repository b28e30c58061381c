"""Gated convolution along time (Gehring et al. 2017 §3.2): every token sees a few neighbours."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline
from regard.core.state import State
from regard.mixers.mixer import Mixer, MixerSpec
from regard.parts.dropout import Dropout
from regard.parts.linear import linear


class ConvolutionSpec(MixerSpec):
    kernel: int = Field(default=3, gt=0)
    causal: bool = False
    """See the tokens before (decoder) rather than those on both sides (encoder)."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of the input."""

    def build(self, width: int, memory_width: int | None) -> Mixer:
        if not self.causal and self.kernel % 2 == 0:
            raise UsageError(f"a convolution that looks to both sides needs an odd kernel, got {self.kernel}")
        return Convolution(self, width)


class Convolution(Mixer):
    """v(x) ⊙ σ(g(x)) over a window. The state is the last kernel − 1 inputs."""

    def __init__(self, spec: ConvolutionSpec, width: int) -> None:
        super().__init__()
        self.width, self.causal, self.margin = width, spec.causal, spec.kernel - 1
        self.convolve = nn.Conv1d(width, 2 * width, spec.kernel)
        # Half of what passes is gated away and some is dropped: the gain keeps the variance (Gehring §3.5).
        nn.init.normal_(self.convolve.weight, std=(4 * (1 - spec.dropout) / (spec.kernel * width)) ** 0.5)
        nn.init.zeros_(self.convolve.bias)  # type: ignore[arg-type]
        self.dropout = Dropout(spec.dropout)

    def start(self, batch: int, memory: Memory | None) -> State:
        return self.convolve.weight.new_zeros(batch, self.margin if self.causal else 0, self.width)

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        real = timeline.real_now
        x = x.masked_fill(~real[..., None], 0.0)
        seen = torch.cat((state, x), dim=1) if self.causal else x
        padded = 0 if self.causal else self.margin // 2
        # One product over windows keeps time before width; torch's own convolution wants them the other way.
        windows = F.pad(self.dropout(seen), (0, 0, padded, padded)).unfold(1, self.margin + 1, 1)
        y = F.glu(linear(windows.flatten(2), self.convolve.weight.flatten(1), self.convolve.bias), dim=-1)
        return y, self._last(seen, real.sum(1)) if self.causal else state

    def _last(self, seen: Float[Tensor, "batch seen width"], count: Tensor) -> Tensor:
        """The ``margin`` inputs that end at each row's last real token."""
        index = count[:, None] + torch.arange(self.margin, device=seen.device)
        return seen.gather(1, index[..., None].expand(-1, -1, seen.shape[-1]))
