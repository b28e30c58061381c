"""Tokens one after another: what a language model is, and the second half of a translator."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core import masks
from regard.core.errors import UsageError
from regard.core.sequences import Memory, Past, Timeline, Tokens
from regard.core.spec import Spec
from regard.core.state import State
from regard.heads.vocabulary import VocabularySpec
from regard.parts.cross_entropy import Advice
from regard.parts.embeddings import EmbeddingSpec
from regard.stacks.stack import StackSpec


class DecoderSpec(Spec):
    embedding: EmbeddingSpec
    stack: StackSpec
    head: VocabularySpec = VocabularySpec()

    def build(self, vocabulary: int, memory_width: int | None, tied: bool) -> "Decoder":
        return Decoder(self, vocabulary, memory_width, tied)


class DecoderState(NamedTuple):
    past: Past
    layers: State


class Decoder(nn.Module):
    """No position sees a later one, so a sequence may be read whole or token by token."""

    def __init__(self, spec: DecoderSpec, vocabulary: int, memory_width: int | None, tied: bool) -> None:
        super().__init__()
        self.embedding = spec.embedding.build(vocabulary)
        self.stack = spec.stack.build(self.embedding.width, memory_width)
        if not self.stack.causal:
            raise UsageError("a decoder may not look ahead: one of its mixers reads in both directions")
        self.head = spec.head.build(self.stack.width, vocabulary, self.embedding.tokens if tied else None)

    def start(self, batch: int, memory: Memory | None) -> DecoderState:
        past = Past.none(batch, self.embedding.tokens.weight.device)
        return DecoderState(past, self.stack.start(batch, memory))

    def read(
        self, tokens: Tokens, state: DecoderState
    ) -> tuple[Float[Tensor, "batch time width"], DecoderState]:
        """Take in the next tokens, however many."""
        return self._read(tokens, Timeline.follow(state.past, tokens.real, masks.causal), state)

    def _read(
        self, tokens: Tokens, timeline: Timeline, state: DecoderState
    ) -> tuple[Float[Tensor, "batch time width"], DecoderState]:
        x = self.embedding(tokens, timeline.position_now)
        x, layers = self.stack(x, timeline, state.layers)
        return x, DecoderState(timeline.past.nearest(self.stack.reach), layers)

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """The embedded tokens of texts that begin here, and the states after every layer."""
        past, states = self.start(len(tokens.ids), None)
        timeline = Timeline.follow(past, tokens.real, masks.causal)
        x = self.embedding(tokens, timeline.position_now)
        layers, _ = self.stack.each(x, timeline, states)
        return [x, *layers]

    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]:
        """Logits of the token that follows."""
        logits: Tensor = self.head(x)
        return logits

    def cost(
        self,
        x: Float[Tensor, "rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        """Summed cross-entropy of the tokens that were wanted next."""
        return self.head.cost(x, wanted, smoothing, advice)

    def cost_of_readings(
        self,
        x: Float[Tensor, "readings rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        agreement: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        """The same where the tokens before were read twice, and both times should say the same."""
        return self.head.cost_of_readings(x, wanted, smoothing, agreement, advice)

    def step(
        self, tokens: Int[Tensor, "rows"], state: DecoderState
    ) -> tuple[Float[Tensor, "rows vocabulary"], DecoderState]:
        """Log-probabilities after one more token: all that a search knows of a model."""
        timeline = Timeline.one_more(state.past)
        x, state = self._read(Tokens(tokens[:, None], timeline.real_now), timeline, state)
        return log_softmax(self.predict(x[:, -1])), state


def log_softmax(logits: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
    """Where nobody learns from them, in the place of the logits: the largest thing a step makes."""
    if torch.is_grad_enabled() or not logits.is_cpu or torch.onnx.is_in_onnx_export():
        return logits.log_softmax(-1)
    return torch.log_softmax(logits, -1, out=logits)
