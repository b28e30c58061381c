"""An encoder and what is read off it: classes, numbers, tags."""

from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.sequences import Memory, Places, Tokens
from regard.heads.head import HeadSpec, States
from regard.heads.vocabulary import VocabularySpec
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.parts.pooling import PoolingSpec


class LabellerSpec(ModelSpec):
    tables: ClassVar[Mapping[str, str]] = {"text": "encoder.embedding.tokens"}

    encoder: EncoderSpec
    head: HeadSpec
    words: VocabularySpec | None = None
    """What says which token comes next, for a reader that goes on learning that; null: nothing."""
    tied: bool = True
    """That uses the matrix of the embedding (Press and Wolf 2017)."""

    def build(self, sizes: Mapping[str, int]) -> "Labeller":
        return Labeller(self, sizes["text"], sizes.get("label", 0))

    def reader(self) -> EncoderSpec:
        return self.encoder

    def writer(self) -> VocabularySpec | None:
        return self.words

    def tied_words(self) -> bool:
        return self.tied

    def summary(self) -> PoolingSpec:
        return self.head.summary()


class Labeller(nn.Module):
    def __init__(self, spec: LabellerSpec, vocabulary: int, labels: int) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(vocabulary)
        self.head = spec.head.build(self.encoder.width, labels)
        tied = self.encoder.embedding.tokens if spec.tied else None
        self.words = None if spec.words is None else spec.words.build(self.encoder.width, vocabulary, tied)

    @property
    def longest(self) -> int | None:
        return self.encoder.longest

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """The embedded tokens, and the states after every layer."""
        layers: list[Tensor] = self.encoder.layers(tokens)
        return layers

    def judge(self, tokens: Tokens, places: Places | None) -> Float[Tensor, "batch *asked scores"]:
        """Scores of everything that can be answered."""
        return self.judged(self.read(tokens), places)

    def read(self, tokens: Tokens) -> Memory:
        memory: Memory = self.encoder(tokens)
        return memory

    def judged(self, memory: Memory, places: Places | None) -> Float[Tensor, "batch *asked scores"]:
        scores: Tensor = self.head(States(memory.states, memory.real, places))
        return scores

    def cost_of_writing(
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"]
    ) -> Float[Tensor, ""]:
        """Summed cross-entropy of the tokens that come next."""
        assert self.words is not None, "this model writes nothing"
        return self.words.cost(x, wanted, 0.0)
