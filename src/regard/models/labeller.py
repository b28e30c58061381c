"""An encoder and what is read off it: classes, numbers, tags."""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.sequences import Places, Tokens
from regard.heads.head import HeadSpec, States
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec


class LabellerSpec(ModelSpec):
    encoder: EncoderSpec
    head: HeadSpec

    def build(self, sizes: Mapping[str, int]) -> "Labeller":
        return Labeller(self, sizes["text"], sizes.get("label", 0))

    def reader(self) -> EncoderSpec:
        return self.encoder


class Labeller(nn.Module):
    def __init__(self, spec: LabellerSpec, vocabulary: int, labels: int) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(vocabulary)
        self.head = spec.head.build(self.encoder.width, labels)

    @property
    def longest(self) -> int | None:
        return self.encoder.longest

    def judge(self, tokens: Tokens, places: Places | None) -> Float[Tensor, "batch *asked scores"]:
        """Scores of everything that can be answered."""
        memory = self.encoder(tokens)
        scores: Tensor = self.head(States(memory.states, memory.real, places))
        return scores
