"""Convolution along time: every token sees a few neighbours.

Gated, with one window (Gehring et al. 2017 §3.2), or windows of several widths side by side (Kim 2014 §2).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline
from regard.core.state import State
from regard.mixers.mixer import Mixer, MixerSpec
from regard.parts.dropout import Dropout
from regard.parts.feedforward import ACTIVATIONS, type_of_activation
from regard.parts.filters import Filters
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


class ParallelConvolutionSpec(MixerSpec):
    """Its output is one value a filter, those of the first width first."""

    filters: tuple[Filters, ...] = Field(default=(Filters(width=3, count=100),), min_length=1)
    """What is looked at side by side. An even width sees one token more ahead than behind: of four, one
    before and two after."""
    activation: type_of_activation = "relu"
    causal: bool = False
    """See the tokens before (decoder) rather than those on both sides (encoder)."""

    def build(self, width: int, memory_width: int | None) -> Mixer:
        return ParallelConvolution(self, width)


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
        y = F.glu(convolved(F.pad(self.dropout(seen), (0, 0, padded, padded)), self.convolve), dim=-1)
        return y, last_inputs(seen, real.sum(1), self.margin) if self.causal else state


class ParallelConvolution(Mixer):
    """φ(W x + b) over windows of every width, side by side. The state is the last inputs of the widest."""

    def __init__(self, spec: ParallelConvolutionSpec, width: int) -> None:
        super().__init__()
        self.width, self.input_width = sum(some.count for some in spec.filters), width
        self.causal, self.margin = spec.causal, max(some.width for some in spec.filters) - 1
        looks = [nn.Conv1d(width, some.count, some.width) for some in spec.filters]
        for look in looks:
            nn.init.xavier_uniform_(look.weight.flatten(1))  # as the product it is computed by
            nn.init.zeros_(look.bias)  # type: ignore[arg-type]
        self.filters = nn.ModuleList(looks)
        self.activation = ACTIVATIONS[spec.activation]

    def start(self, batch: int, memory: Memory | None) -> State:
        weight: Tensor = self.filters[0].weight  # type: ignore[assignment]
        return weight.new_zeros(batch, self.margin if self.causal else 0, self.input_width)

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        real = timeline.real_now
        x = x.masked_fill(~real[..., None], 0.0)
        seen = torch.cat((state, x), dim=1) if self.causal else F.pad(x, (0, 0, *self._sides(self.margin)))
        y = torch.cat([convolved(self._around(seen, look), look) for look in self.filters], dim=-1)  # type: ignore[arg-type]
        return self.activation(y), last_inputs(seen, real.sum(1), self.margin) if self.causal else state

    def _around(self, seen: Float[Tensor, "batch seen width"], look: nn.Conv1d) -> Tensor:
        """Without what only wider windows reach."""
        before, after = self._sides(self.margin)
        own_before, own_after = self._sides(look.kernel_size[0] - 1)
        return seen[:, before - own_before : seen.shape[1] - (after - own_after)]

    def _sides(self, margin: int) -> tuple[int, int]:
        """How many of the tokens around one are before it, and how many after."""
        return (margin, 0) if self.causal else (margin // 2, margin - margin // 2)


def convolved(
    seen: Float[Tensor, "batch seen width"], convolve: nn.Conv1d
) -> Float[Tensor, "batch time out"]:
    """One product over windows keeps time before width; torch's own convolution wants them the other way."""
    windows = seen.unfold(1, convolve.kernel_size[0], 1)
    return linear(windows.flatten(2), convolve.weight.flatten(1), convolve.bias)


def last_inputs(
    seen: Float[Tensor, "batch seen width"], count: Int[Tensor, "batch"], margin: int
) -> Float[Tensor, "batch margin width"]:
    """The ``margin`` inputs that end at each row's last real token."""
    index = count[:, None] + torch.arange(margin, device=seen.device)
    return seen.gather(1, index[..., None].expand(-1, -1, seen.shape[-1]))
