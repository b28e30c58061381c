"""Recurrence as a mixer: forward, backward or both ways; depth comes from stacking.

Stacked, each direction of a layer reads both directions of the one below (Irsoy and Cardie 2014), or, where
they are kept ``apart``, only its own: then neither ever knows what the other has seen (Peters et al. 2018).
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline
from regard.core.state import State
from regard.core.tape import watching
from regard.mixers.mixer import Mixer, MixerSpec, required_memory, required_memory_width
from regard.parts.cells import Cell, CellSpec
from regard.parts.pooling import PoolingSpec


class RecurrentSpec(MixerSpec):
    cell: CellSpec
    direction: Literal["forward", "backward", "both", "apart"] = "forward"
    """both: each way reads all of its input; apart: forward the first half of it, backward the second."""
    bridge: PoolingSpec | None = None
    """Start from a summary of the memory (Sutskever et al. 2014) instead of from zero."""

    def build(self, width: int, memory_width: int | None) -> Mixer:
        bridge = None
        if self.bridge is not None:
            if self.direction != "forward":
                raise UsageError(f"a bridge starts a forward recurrence, this one runs {self.direction!r}")
            bridge = (self.bridge, required_memory_width(memory_width, "a bridge"))
        if self.direction == "apart" and width % 2:
            raise UsageError(f"two directions that are read apart need an even width, not {width}")
        two = self.direction in ("both", "apart")
        directions = (False, True) if two else (self.direction == "backward",)
        return Recurrent(self.cell, width, directions, bridge, apart=self.direction == "apart")


class Bridge(nn.Module):
    """From a memory to a first state: tanh(W · summary) for every tensor of it."""

    def __init__(self, pooling: PoolingSpec, memory_width: int, widths: list[int]) -> None:
        super().__init__()
        self.pooling, self.widths = pooling, widths
        self.linear = nn.Linear(memory_width, sum(widths))

    def forward(self, memory: Memory) -> tuple[Tensor, ...]:
        pooled = self.pooling.pool(memory.states, memory.real)
        return torch.split(torch.tanh(self.linear(pooled)), self.widths, dim=-1)


class Recurrent(Mixer):
    def __init__(
        self,
        cell: CellSpec,
        input_width: int,
        reversed_directions: tuple[bool, ...],
        bridge: tuple[PoolingSpec, int] | None,
        apart: bool = False,
    ) -> None:
        super().__init__()
        self.reversed, self.apart = reversed_directions, apart
        own = input_width // len(reversed_directions) if apart else input_width
        self.cells = nn.ModuleList(cell.build(own) for _ in reversed_directions)
        self.width = cell.width * len(reversed_directions)
        self.causal = not any(reversed_directions)
        if len(reversed_directions) == 2:
            self.sides = "kept" if apart else "made"
        first: Cell = self.cells[0]  # type: ignore[assignment]
        self.bridge = Bridge(*bridge, first.widths) if bridge else None

    def start(self, batch: int, memory: Memory | None) -> State:
        if self.bridge is not None:
            return (self.bridge(required_memory(memory, "a bridge")),)
        return tuple(cell.start(batch) for cell in self.cells)  # type: ignore[operator]

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        real = timeline.real_now
        outputs, states = [], []
        inputs = x.chunk(len(self.cells), dim=-1) if self.apart else [x] * len(self.cells)
        for cell, own, before, backwards in zip(self.cells, inputs, state, self.reversed, strict=True):
            y, after = cell.run(reverse(own, real) if backwards else own, before, real)  # type: ignore[operator]
            outputs.append(reverse(y, real) if backwards else y)
            states.append(after)
        joined = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-1)
        watch = watching(self)
        if watch is not None:
            joined = watch("states", joined)
        return joined, tuple(states)


def reverse(
    x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
) -> Float[Tensor, "batch time width"]:
    """The real part of every row backwards; padding stays where it is."""
    if bool(real.all()):
        return x.flip(1)
    time = torch.arange(x.shape[1], device=x.device)
    index = torch.where(real, real.sum(1, keepdim=True) - 1 - time, time)
    return x.gather(1, index[..., None].expand_as(x))
