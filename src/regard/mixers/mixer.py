"""The contract along time.

    state    = mixer.start(batch, memory)            what it knows before the first token
    y, state = mixer(x, timeline, state)             the next tokens, as many as there are

Attention, recurrence, convolution and the position-wise network all keep it, so they swap freely. Memory
(encoder states, image regions) goes in once, at the start: what a mixer needs of it becomes part of the
state. Reading a sequence whole or in pieces gives the same numbers; that is the chunk law of the tests.

What a state keeps of a memory (its ``of_memory``) may have fewer rows than x: one for each sentence, of which
x then has the same number of hypotheses, side by side.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline
from regard.core.spec import Spec
from regard.core.state import State, repeat_rows, tensors_of


class Mixer(nn.Module, ABC):
    width: int
    """Width of the output."""
    causal: bool = True
    """Never looks further ahead than the timeline's mask allows, so it may stand in a decoder."""
    reach: int | None = 0
    """How many tokens before those at hand it must be told of by the timeline; None: all of them."""
    looks_at: Literal["itself", "memory"] | None = None
    """What its attention weights, if it has any, are spread over."""
    sides: Literal["mingled", "made", "kept"] = "mingled"
    """made: half of its output has seen nothing later, the other half nothing earlier; kept: that is so if it
    is so of its input; mingled: neither."""

    @abstractmethod
    def start(self, batch: int, memory: Memory | None) -> State:
        """State before the first token of ``batch`` rows."""

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        """Read the tokens at hand; padding is on the right and changes nothing."""


class MixerSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "attention": "regard.mixers.attention:SelfAttentionSpec",
        "memory_attention": "regard.mixers.attention:MemoryAttentionSpec",
        "recurrent": "regard.mixers.recurrent:RecurrentSpec",
        "look_then_step": "regard.mixers.attentive:LookThenStepSpec",
        "step_then_look": "regard.mixers.attentive:StepThenLookSpec",
        "convolution": "regard.mixers.convolution:ConvolutionSpec",
        "parallel_convolution": "regard.mixers.convolution:ParallelConvolutionSpec",
        "pointwise": "regard.mixers.pointwise:PointwiseSpec",
    }

    def build(self, width: int, memory_width: int | None) -> Mixer:
        """``width`` of the input; ``memory_width`` when there is a memory to look at."""
        raise NotImplementedError


def required_memory_width(memory_width: int | None, who: str) -> int:
    if memory_width is None:
        raise UsageError(f"{who} looks at a memory, but nothing in this model provides one")
    return memory_width


def required_memory(memory: Memory | None, who: str) -> Memory:
    if memory is None:
        raise UsageError(f"{who} was started without the memory it looks at")
    return memory


def together(x: Float[Tensor, "rows time width"], sentences: int) -> Float[Tensor, "sentences queries width"]:
    """The tokens of all hypotheses of a sentence side by side, as they look at one memory."""
    return x if len(x) == sentences else x.reshape(sentences, -1, x.shape[-1])


def each_its_own(remembered: State, rows: int) -> State:
    """The memory again for every hypothesis: who watches wants to see rows, not sentences."""
    times = rows // max(1, len(tensors_of(remembered)[0]))
    return remembered if times == 1 else repeat_rows(remembered, times)
