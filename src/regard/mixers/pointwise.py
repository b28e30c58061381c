"""The position-wise network as a mixer that mixes nothing: every token for itself."""

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regard.core.sequences import Memory, Timeline
from regard.core.state import State
from regard.mixers.mixer import Mixer, MixerSpec
from regard.parts.feedforward import Feedforward, type_of_activation


class PointwiseSpec(MixerSpec):
    hidden: int = Field(gt=0)
    activation: type_of_activation = "relu"
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of the hidden layer."""
    gated: bool = False
    bias: bool = True

    def build(self, width: int, memory_width: int | None) -> Mixer:
        return Pointwise(self, width)


class Pointwise(Mixer):
    def __init__(self, spec: PointwiseSpec, width: int) -> None:
        super().__init__()
        self.width = width
        self.network = Feedforward(width, spec.hidden, spec.activation, spec.dropout, spec.gated, spec.bias)

    def start(self, batch: int, memory: Memory | None) -> State:
        return None

    def forward(
        self, x: Float[Tensor, "batch time width"], timeline: Timeline, state: State
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        return self.network(x), None
