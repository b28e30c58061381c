"""An encoder that guesses hidden tokens from both sides, and may say whether one passage follows another."""

from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.sequences import Memory, Tokens
from regard.heads.head import HeadSpec, States
from regard.heads.vocabulary import RephrasingSpec, VocabularySpec
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.parts.pooling import FirstSpec, PoolingSpec

FOLLOWS = 2
"""It follows, or it does not."""


class MaskedModelSpec(ModelSpec):
    tables: ClassVar[Mapping[str, str]] = {"text": "encoder.embedding.tokens"}

    encoder: EncoderSpec
    head: VocabularySpec = VocabularySpec(bias=True, rephrasing=RephrasingSpec())
    tied: bool = True
    """One matrix for input and output (Press and Wolf 2017)."""
    relation: HeadSpec | None = None
    """What says whether the second passage follows the first; null: nothing."""

    def build(self, sizes: Mapping[str, int]) -> "MaskedModel":
        return MaskedModel(self, sizes["text"])

    def reader(self) -> EncoderSpec:
        return self.encoder

    def summary(self) -> PoolingSpec:
        """At its first mark."""
        return FirstSpec()


class MaskedModel(nn.Module):
    def __init__(self, spec: MaskedModelSpec, vocabulary: int) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(vocabulary)
        tied = self.encoder.embedding.tokens if spec.tied else None
        self.words = spec.head.build(self.encoder.width, vocabulary, tied)
        self.relation = None if spec.relation is None else spec.relation.build(self.encoder.width, FOLLOWS)

    @property
    def longest(self) -> int | None:
        return self.encoder.longest

    def read(self, tokens: Tokens) -> Memory:
        memory: Memory = self.encoder(tokens)
        return memory

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """The embedded tokens, and the states after every layer."""
        layers: list[Tensor] = self.encoder.layers(tokens)
        return layers

    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]:
        """Logits of the token that belongs here."""
        logits: Tensor = self.words(x)
        return logits

    def cost(
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"], smoothing: float
    ) -> Float[Tensor, ""]:
        return self.words.cost(x, wanted, smoothing)

    def relation_cost(self, memory: Memory, follows: Int[Tensor, "batch 1"]) -> Float[Tensor, ""]:
        """Summed over rows."""
        assert self.relation is not None, "this model compares no passages"
        scores = self.relation(States(memory.states, memory.real, None))
        loss: Tensor = self.relation.cost(scores, follows, None).loss
        return loss
