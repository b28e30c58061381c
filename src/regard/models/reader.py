"""An encoder and nothing on top of it: what others start from, and what vectors of texts are read off."""

from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.sequences import Tokens
from regard.core.spec import Spec
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.parts.feedforward import ACTIVATIONS, initialise, type_of_activation
from regard.parts.pooling import MeanSpec, PoolingSpec


class GistSpec(Spec):
    """A layer over the first state, φ(W x₁): what pairs of passages were judged by (Devlin et al. 2019)."""

    activation: type_of_activation = "tanh"

    def build(self, width: int) -> "Gist":
        return Gist(self, width)


class Gist(nn.Module):
    def __init__(self, spec: GistSpec, width: int) -> None:
        super().__init__()
        self.linear = initialise(nn.Linear(width, width))
        self.activation = ACTIVATIONS[spec.activation]

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch width"]:
        return self.activation(self.linear(x[:, 0]))


class ReaderSpec(ModelSpec):
    tables: ClassVar[Mapping[str, str]] = {"text": "encoder.embedding.tokens"}

    encoder: EncoderSpec
    gist: GistSpec | None = None
    """A layer over the first state, for who wants it (--pooling gist); null: none."""

    def build(self, sizes: Mapping[str, int]) -> "Reader":
        return Reader(self, sizes["text"])

    def reader(self) -> EncoderSpec:
        return self.encoder

    def summary(self) -> PoolingSpec:
        """All of it: its makers trained it to be averaged, or left no word on where it sums up."""
        return MeanSpec()


class Reader(nn.Module):
    def __init__(self, spec: ReaderSpec, vocabulary: int) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(vocabulary)
        self.gist = None if spec.gist is None else spec.gist.build(self.encoder.width)

    @property
    def longest(self) -> int | None:
        return self.encoder.longest

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """The embedded tokens, and the states after every layer."""
        layers: list[Tensor] = self.encoder.layers(tokens)
        return layers
