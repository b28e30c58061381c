"""Recurrent decoders that look at a memory at every step."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from regard.core import masks
from regard.core.sequences import Memory, Timeline
from regard.core.state import State
from regard.core.tape import Watch, watching
from regard.mixers.mixer import (
    Mixer,
    MixerSpec,
    each_its_own,
    required_memory,
    required_memory_width,
    together,
)
from regard.mixers.recurrent import Bridge
from regard.parts.attend import attend, masked_softmax
from regard.parts.cells import Cell, CellSpec
from regard.parts.dropout import Dropout
from regard.parts.linear import Linear
from regard.parts.pooling import MeanSpec, PoolingSpec
from regard.parts.repeated import Values
from regard.parts.scores import AdditiveSpec, GeneralSpec, Score, ScoreSpec
from regard.parts.squashing import tanh


class Looking(NamedTuple):
    """The cell's state, what was fed back, and the memory as the score sees it."""

    cell: tuple[Tensor, ...]
    fed: Float[Tensor, "batch fed"]
    keys: Float[Tensor, "sentences 1 source prepared"]
    values: Float[Tensor, "sentences 1 source memory"]
    mask: Bool[Tensor, "sentences 1 1 source"]

    @property
    def of_memory(self) -> tuple[str, ...]:
        return ("keys", "values", "mask")

    def look(
        self, query: Float[Tensor, "batch width"], score: Score, watch: Watch | None
    ) -> Float[Tensor, "batch memory"]:
        """What ``query`` finds in the memory."""
        return self.look_all(query[:, None], score, watch).flatten(0, 1)

    def looking(self, score: Score, watch: Watch | None) -> Callable[[Tensor], Tensor]:
        """``look`` for one query after another."""
        if watch is not None:
            return lambda query: self.look(query, score, watch)
        scores, values = score.repeatedly(self.keys), Values(self.values)

        def look(query: Float[Tensor, "batch width"]) -> Float[Tensor, "batch memory"]:
            asked = together(query[:, None], len(self.keys))[:, None]
            return values(masked_softmax(scores(asked), self.mask)).flatten(0, 2)

        return look

    def look_all(
        self, queries: Float[Tensor, "batch time width"], score: Score, watch: Watch | None
    ) -> Float[Tensor, "batch time memory"]:
        keys, values, mask = remembered = self.keys, self.values, self.mask
        if watch is not None:
            keys, values, mask = each_its_own(remembered, len(queries))
        query = together(queries, len(keys))[:, None]
        if watch is not None:
            query, keys, values = watch("queries", query), watch("keys", keys), watch("values", values)
        found = attend(query, keys, values, score, mask, watch=watch)
        return found.view(*queries.shape[:2], -1)


class AttentiveSpec(MixerSpec):
    cell: CellSpec
    bridge: PoolingSpec = MeanSpec()
    """How the memory is summed up into the first state."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of what is read out."""


class Attentive(Mixer):
    """What both orders of looking and stepping share."""

    looks_at = "memory"

    cell: Cell
    score: Score
    bridge: Bridge

    def begin(self, memory: Memory, fed: int) -> Looking:
        keys = self.score.prepare(memory.states[:, None])
        first = self.bridge(memory)
        empty = memory.states.new_zeros(memory.states.shape[0], fed)
        return Looking(first, empty, keys, memory.states[:, None], masks.padding(memory.real))


class LookThenStepSpec(AttentiveSpec):
    score: ScoreSpec = AdditiveSpec()
    readout: int = Field(gt=0)
    """Width of the output."""

    def build(self, width: int, memory_width: int | None) -> Mixer:
        return LookThenStep(self, width, required_memory_width(memory_width, "look_then_step"))


class LookThenStep(Attentive):
    """c_t = look(s_{t−1}); s_t = cell([x_t; c_t], s_{t−1}); out = maxout(s_t, x_t, c_t) (Bahdanau 2015)."""

    def __init__(self, spec: LookThenStepSpec, width: int, memory_width: int) -> None:
        super().__init__()
        self.input_width, self.width = width, spec.readout
        self.cell = spec.cell.build(width + memory_width)
        self.score = spec.score.build(spec.cell.width, memory_width)
        self.bridge = Bridge(spec.bridge, memory_width, self.cell.widths)
        self.readout = Linear(spec.cell.width + width + memory_width, 2 * spec.readout)
        self.dropout = Dropout(spec.dropout)

    def start(self, batch: int, memory: Memory | None) -> State:
        return self.begin(required_memory(memory, "look_then_step"), fed=0)

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        if timeline.is_one_real:
            return self._one(x, state)
        look, cell = state.looking(self.score, watching(self)), state.cell
        step = self.cell.stepping(slice(self.input_width, None))
        of_input = self.cell.project(x, slice(0, self.input_width))
        found, states = [], []
        for gates, real in zip(of_input.unbind(1), timeline.real_now.unbind(1), strict=True):
            context = look(cell[0])
            cell = keep_real(step(gates, context, cell), cell, real)
            found.append(context)
            states.append(cell[0])
        joined = torch.cat((torch.stack(states, 1), x, torch.stack(found, 1)), dim=-1)
        return self._read_out(joined), state._replace(cell=cell)

    def _one(
        self, x: Float[Tensor, "batch 1 width"], state: Looking
    ) -> tuple[Float[Tensor, "batch 1 out"], Looking]:
        """The same for one token in every row, in fewer calls: what a search asks for."""
        context = state.look(state.cell[0], self.score, watching(self))
        given = torch.cat((x[:, 0], context), dim=-1)
        cell = self.cell.advance(given, state.cell)
        joined = torch.cat((cell[0], given), dim=-1)
        return self._read_out(joined)[:, None], state._replace(cell=cell)

    def _read_out(self, joined: Float[Tensor, "*rows joined"]) -> Float[Tensor, "*rows out"]:
        pairs = self.readout(joined).unflatten(-1, (self.width, 2))
        found: Tensor = self.dropout(pairs.amax(-1))
        return found


class StepThenLookSpec(AttentiveSpec):
    score: ScoreSpec = GeneralSpec()
    feeding: bool = True
    """Give the cell what was read out one step before (input feeding, Luong et al. 2015 §3.3)."""

    def build(self, width: int, memory_width: int | None) -> Mixer:
        return StepThenLook(self, width, required_memory_width(memory_width, "step_then_look"))


class StepThenLook(Attentive):
    """h_t = cell(x_t); c_t = look(h_t); h̃_t = tanh(W [c_t; h_t]) (Luong et al. 2015 eq. 5)."""

    def __init__(self, spec: StepThenLookSpec, width: int, memory_width: int) -> None:
        super().__init__()
        self.input_width, self.width, self.feeding = width, spec.cell.width, spec.feeding
        self.cell = spec.cell.build(width + (self.width if spec.feeding else 0))
        self.score = spec.score.build(self.width, memory_width)
        self.bridge = Bridge(spec.bridge, memory_width, self.cell.widths)
        self.combine = Linear(memory_width + self.width, self.width)
        self.dropout = Dropout(spec.dropout)

    def start(self, batch: int, memory: Memory | None) -> State:
        return self.begin(required_memory(memory, "step_then_look"), fed=self.width if self.feeding else 0)

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        if not self.feeding:
            return self._at_once(x, timeline, state)
        if timeline.is_one_real:
            return self._one(x, state)
        look, cell, fed = state.looking(self.score, watching(self)), state.cell, state.fed
        step = self.cell.stepping(slice(self.input_width, None))
        of_input = self.cell.project(x, slice(0, self.input_width))
        outputs = []
        for gates, real in zip(of_input.unbind(1), timeline.real_now.unbind(1), strict=True):
            cell = keep_real(step(gates, fed, cell), cell, real)
            output = self._read_out(look(cell[0]), cell[0])
            (fed,) = keep_real((output,), (fed,), real)
            outputs.append(output)
        return torch.stack(outputs, dim=1), state._replace(cell=cell, fed=fed)

    def _one(
        self, x: Float[Tensor, "batch 1 width"], state: Looking
    ) -> tuple[Float[Tensor, "batch 1 out"], Looking]:
        """The same for one token in every row, in fewer calls: what a search asks for."""
        cell = self.cell.advance(torch.cat((x[:, 0], state.fed), dim=-1), state.cell)
        output = self._read_out(state.look(cell[0], self.score, watching(self)), cell[0])
        return output[:, None], state._replace(cell=cell, fed=output)

    def _read_out(
        self, found: Float[Tensor, "*rows memory"], hidden: Float[Tensor, "*rows state"]
    ) -> Float[Tensor, "*rows out"]:
        output: Tensor = self.dropout(tanh(self.combine(torch.cat((found, hidden), dim=-1))))
        return output

    def _at_once(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        """Nothing is fed back: the cell runs fused over the whole sequence and all queries look together."""
        hidden, cell = self.cell.run(x, state.cell, timeline.real_now)
        found = state.look_all(hidden, self.score, watching(self))
        return self._read_out(found, hidden), state._replace(cell=cell)


def keep_real(
    new: tuple[Tensor, ...], old: tuple[Tensor, ...], real: Bool[Tensor, "batch"]
) -> tuple[Tensor, ...]:
    """Rows that have ended keep their state."""
    if bool(real.all()):
        return new
    return tuple(torch.where(real[:, None], n, o) for n, o in zip(new, old, strict=True))
