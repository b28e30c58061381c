"""A decoder on its own: p(w) = Π p(w_t | w_<t). It carries its state from one piece of text to the next."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.sequences import Tokens
from regard.core.state import State
from regard.heads.vocabulary import VocabularySpec
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.parts.cross_entropy import Advice
from regard.parts.pooling import LastSpec, PoolingSpec

_AT_ONCE = 1024


class LanguageModelSpec(ModelSpec):
    tables: ClassVar[Mapping[str, str]] = {"text": "decoder.embedding.tokens"}

    reads_as: ClassVar[str] = "decoder"
    begins: ClassVar[bool] = False

    decoder: DecoderSpec
    tied: bool = True
    """One matrix for input and output (Press and Wolf 2017)."""

    def build(self, sizes: Mapping[str, int]) -> "LanguageModel":
        return LanguageModel(self, sizes["text"])

    def reader(self) -> EncoderSpec:
        """Its decoder, which reads what it does not have to write."""
        return EncoderSpec(embedding=self.decoder.embedding, stack=self.decoder.stack, sees="earlier")

    def writer(self) -> VocabularySpec | None:
        return self.decoder.head

    def tied_words(self) -> bool:
        return self.tied

    def summary(self) -> PoolingSpec:
        """At the end of what it saw."""
        return LastSpec()


class LanguageModel(nn.Module):
    def __init__(self, spec: LanguageModelSpec, vocabulary: int) -> None:
        super().__init__()
        self.decoder = spec.decoder.build(vocabulary, memory_width=None, tied=spec.tied)

    @property
    def longest(self) -> int | None:
        """Tokens that can be read one after another; None when there is no limit."""
        return self.decoder.embedding.longest

    def start(self, batch: int) -> State:
        """Before the first token of every row."""
        return self.decoder.start(batch, memory=None)

    def read(self, tokens: Tokens, state: State) -> tuple[Float[Tensor, "batch time width"], State]:
        return self.decoder.read(tokens, state)

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """The embedded tokens, and the states after every layer."""
        layers: list[Tensor] = self.decoder.layers(tokens)
        return layers

    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]:
        return self.decoder.predict(x)

    def cost(
        self,
        x: Float[Tensor, "rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        return self.decoder.cost(x, wanted, smoothing, advice)

    def log_probs_of(
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"]
    ) -> Float[Tensor, "rows"]:
        """Of the tokens that were wanted, some rows at a time: a vocabulary is wide."""
        found = [
            self.predict(some).float().log_softmax(-1).gather(-1, targets[:, None])[:, 0]
            for some, targets in zip(torch.split(x, _AT_ONCE), torch.split(wanted, _AT_ONCE), strict=True)
        ]
        return torch.cat(found)

    def step(
        self, tokens: Int[Tensor, "rows"], state: State
    ) -> tuple[Float[Tensor, "rows vocabulary"], State]:
        return self.decoder.step(tokens, state)
