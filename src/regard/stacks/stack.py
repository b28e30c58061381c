"""Layers on layers: a stack is blocks, a block is mixers with their joins, repeated."""

from collections.abc import Iterable
from functools import partial

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline
from regard.core.spec import Spec
from regard.core.state import State
from regard.core.tape import watching
from regard.mixers.mixer import Mixer, MixerSpec
from regard.parts.norms import NormSpec
from regard.stacks.join import Join, JoinSpec, PlainSpec


class BlockSpec(Spec):
    mixers: tuple[MixerSpec, ...] = Field(min_length=1)
    join: JoinSpec = PlainSpec()
    repeat: int = Field(default=1, gt=0)
    """How many layers of this form."""
    shared: bool = False
    """One set of weights for all of them (Lan et al. 2020)."""


class StackSpec(Spec):
    blocks: tuple[BlockSpec, ...] = Field(min_length=1)
    final_norm: NormSpec | None = None

    def build(self, width: int, memory_width: int | None) -> "Stack":
        return Stack(self, width, memory_width)


class Layer(nn.Module):
    """One layer: its mixers in order, each joined with what it was given."""

    def __init__(self, spec: BlockSpec, width: int, memory_width: int | None) -> None:
        super().__init__()
        mixers, joins = list[Mixer](), list[Join]()
        for part in spec.mixers:
            mixers.append(part.build(width, memory_width))
            joins.append(spec.join.build(width, mixers[-1].width))
            width = mixers[-1].width
        self.width = width
        self.causal = all(mixer.causal for mixer in mixers)
        self.reach = farthest(mixer.reach for mixer in mixers)
        self.mixers, self.joins = nn.ModuleList(mixers), nn.ModuleList(joins)

    def start(self, batch: int, memory: Memory | None) -> State:
        return tuple(mixer.start(batch, memory) for mixer in self.mixers)  # type: ignore[operator]

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        states = []
        for mixer, join, before in zip(self.mixers, self.joins, state, strict=True):
            x, after = join(x, partial(mixer, timeline=timeline, state=before))
            states.append(after)
        watch = watching(self)
        return x if watch is None else watch("states", x), tuple(states)


class Stack(nn.Module):
    def __init__(self, spec: StackSpec, width: int, memory_width: int | None) -> None:
        super().__init__()
        layers = list[Layer]()
        for block in spec.blocks:
            for number in range(block.repeat):
                shared = block.shared and number > 0
                layers.append(layers[-1] if shared else Layer(block, width, memory_width))
                if block.shared and block.repeat > 1 and layers[-1].width != width:
                    raise UsageError(
                        "a shared layer is fed its own output and needs one width, but this one turns "
                        f"{width} into {layers[-1].width}"
                    )
                width = layers[-1].width
        self.width = width
        self.causal = all(layer.causal for layer in layers)
        self.reach = farthest(layer.reach for layer in layers)
        self.layers = nn.ModuleList(layers)
        self.final_norm = spec.final_norm.build(width) if spec.final_norm else None

    def start(self, batch: int, memory: Memory | None) -> State:
        return tuple(layer.start(batch, memory) for layer in self.layers)  # type: ignore[operator]

    @property
    def widths(self) -> list[int]:
        """Of what each layer gives."""
        return [layer.width for layer in self.layers]  # type: ignore[misc]

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        layers, state = self.each(x, timeline, state)
        return layers[-1], state

    def each(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[list[Float[Tensor, "batch time _"]], State]:
        """What every layer gives, the lowest first; the last one normed."""
        outputs, states = list[Tensor](), []
        for layer, before in zip(self.layers, state, strict=True):
            x, after = layer(x, timeline, before)
            outputs.append(x)
            states.append(after)
        if self.final_norm is not None:
            outputs[-1] = self.final_norm(outputs[-1])
        return outputs, tuple(states)


def farthest(reaches: Iterable[int | None]) -> int | None:
    """The largest; None is without end."""
    known = list(reaches)
    return None if None in known else max(reach for reach in known if reach is not None)
