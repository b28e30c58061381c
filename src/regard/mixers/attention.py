"""Multi-head attention over the sequence itself or over a memory (Vaswani et al. 2017 §3.2)."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from regard.core import masks
from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline
from regard.core.state import State
from regard.core.tape import watching
from regard.mixers.mixer import (
    Mixer,
    MixerSpec,
    each_its_own,
    required_memory,
    required_memory_width,
    together,
)
from regard.parts.attend import attend
from regard.parts.feedforward import initialise
from regard.parts.linear import Linear, linear
from regard.parts.positions import NoPairPositionSpec, PairPositions, PairPositionSpec
from regard.parts.scores import ScaledSpec, Score, ScoreSpec


class HeadsSpec(MixerSpec):
    """What both uses of multi-head attention have in common."""

    heads: int = Field(default=8, gt=0)
    score: ScoreSpec = ScaledSpec()
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of the attention weights."""
    bias: bool = True

    def head_width(self, width: int) -> int:
        if width % self.heads:
            raise UsageError(f"a width of {width} does not split into {self.heads} heads of one size")
        return width // self.heads


class SelfAttentionSpec(HeadsSpec):
    positions: PairPositionSpec = NoPairPositionSpec()
    radius: int | None = Field(default=None, ge=0)
    """Look at this many neighbours on each side only; None: at all. A decoder forgets what is older."""
    carries: Literal["keys", "inputs"] = "keys"
    """What is remembered of tokens already read. From keys and values it is cheapest to go on; from inputs,
    gradients reach the projections of tokens of an earlier segment too (Dai et al. 2019 eq. 3)."""

    def build(self, width: int, memory_width: int | None) -> Mixer:
        return SelfAttention(self, width)


class Seen(NamedTuple):
    """Keys and values of the tokens so far."""

    keys: Float[Tensor, "batch heads key prepared"]
    values: Float[Tensor, "batch heads key width"]


class SeenInputs(NamedTuple):
    """The inputs of the tokens so far; keys and values are made of them again."""

    inputs: Float[Tensor, "batch key width"]


class SelfAttention(Mixer):
    looks_at = "itself"

    def __init__(self, spec: SelfAttentionSpec, width: int) -> None:
        super().__init__()
        self.width, self.heads, self.radius = width, spec.heads, spec.radius
        self.reach, self.carries_inputs = spec.radius, spec.carries == "inputs"
        head = spec.head_width(width)
        self.dropout = spec.dropout
        self.score: Score = spec.score.build(head, head, spec.heads)
        if self.score.by_slot:
            raise UsageError(f"the score {spec.score.kind()!r} looks at a memory, not at the sequence itself")
        self.positions: PairPositions = spec.positions.build(spec.heads, head)
        # One matrix for queries, keys and values; the gain makes it three Glorot matrices side by side.
        self.project = initialise(Linear(width, 3 * width, bias=spec.bias), gain=2**-0.5)
        self.out = initialise(Linear(width, width, bias=spec.bias))

    def start(self, batch: int, memory: Memory | None) -> State:
        return None

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        watch, position = watching(self), timeline.position
        if watch is not None and self.positions.felt:
            position = watch("positions", position)
        query, keys, values, seen = self._project(x, timeline, state, position)
        if watch is not None:
            query, keys, values = watch("queries", query), watch("keys", keys), watch("values", values)
        mask = timeline.mask
        if self.radius is not None:
            mask = masks.both(mask, masks.window(timeline.position_now, timeline.position, self.radius))
        context = attend(
            query,
            keys,
            values,
            self.score,
            mask,
            self.positions.bias(query, position[:, -timeline.queries :], position),
            self.dropout if self.training else 0.0,
            watch,
        )
        return self.out(join_heads(context)), seen

    def _project(
        self,
        x: Float[Tensor, "batch time width"],
        timeline: Timeline,
        state: State,
        position: Int[Tensor, "batch key"],
    ) -> tuple[Tensor, Tensor, Tensor, State]:
        """Queries of the tokens at hand; prepared keys, and values, of all; what to remember."""
        before = timeline.real.shape[1] - timeline.queries
        position_now = position[:, before:]
        if self.carries_inputs:
            inputs = x if state is None else torch.cat((newest(state.inputs, before, 1), x), dim=1)
            query = linear(x, *self._part(0, 1))
            keys, values = linear(inputs, *self._part(1, 3)).chunk(2, dim=-1)
        else:
            query, keys, values = self.project(x).chunk(3, dim=-1)
            position = position_now
        query, keys, values = (split_heads(part, self.heads) for part in (query, keys, values))
        query = self.positions.ask(self.positions.turn(query, position_now))
        keys = self.score.prepare(self.positions.turn(keys, position))
        if self.carries_inputs:
            return query, keys, values, SeenInputs(inputs)
        if state is not None:
            keys = torch.cat((newest(state.keys, before, 2), keys), dim=2)
            values = torch.cat((newest(state.values, before, 2), values), dim=2)
        return query, keys, values, Seen(keys, values)

    def _part(self, begin: int, end: int) -> tuple[Tensor, Tensor | None]:
        """Some of the three maps that share one matrix."""
        rows, bias = slice(begin * self.width, end * self.width), self.project.bias
        return self.project.weight[rows], None if bias is None else bias[rows]


def newest(seen: Tensor, count: int, dim: int) -> Tensor:
    """What the timeline still tells of: it may have forgotten the oldest."""
    return seen.narrow(dim, seen.shape[dim] - count, count)


class MemoryAttentionSpec(HeadsSpec):
    def build(self, width: int, memory_width: int | None) -> Mixer:
        return MemoryAttention(self, width, required_memory_width(memory_width, "memory_attention"))


class Remembered(NamedTuple):
    """A memory as one attention sees it: computed once, looked at by every token of every hypothesis."""

    keys: Float[Tensor, "sentences heads source prepared"]
    values: Float[Tensor, "sentences heads source width"]
    real: Bool[Tensor, "sentences source"]

    @property
    def of_memory(self) -> tuple[str, ...]:
        return ("keys", "values", "real")


class MemoryAttention(Mixer):
    looks_at = "memory"

    def __init__(self, spec: MemoryAttentionSpec, width: int, memory_width: int) -> None:
        super().__init__()
        self.width, self.heads, self.dropout = width, spec.heads, spec.dropout
        head = spec.head_width(width)
        self.score: Score = spec.score.build(head, head, spec.heads)
        self.query = initialise(Linear(width, width, bias=spec.bias))
        self.project = initialise(Linear(memory_width, 2 * width, bias=spec.bias), gain=2**-0.5)
        self.out = initialise(Linear(width, width, bias=spec.bias))

    def start(self, batch: int, memory: Memory | None) -> State:
        states, real = required_memory(memory, "memory_attention")
        keys, values = (split_heads(part, self.heads) for part in self.project(states).chunk(2, dim=-1))
        return Remembered(self.score.prepare(keys), values, real)

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        watch = watching(self)
        seen = state if watch is None else each_its_own(state, len(x))
        query = split_heads(together(self.query(x), len(seen.real)), self.heads)
        keys, values = seen.keys, seen.values
        if watch is not None:
            query, keys, values = watch("queries", query), watch("keys", keys), watch("values", values)
        mask = None if bool(seen.real.all()) else masks.padding(seen.real)
        dropout = self.dropout if self.training else 0.0
        context = attend(query, keys, values, self.score, mask, None, dropout, watch)
        return self.out(join_heads(context).view(x.shape)), state


def split_heads(x: Float[Tensor, "batch time width"], heads: int) -> Float[Tensor, "batch heads time head"]:
    batch, time, _ = x.shape
    return x.view(batch, time, heads, -1).transpose(1, 2)


def join_heads(x: Float[Tensor, "batch heads time head"]) -> Float[Tensor, "batch time width"]:
    return x.transpose(1, 2).flatten(2)
