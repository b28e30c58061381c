"""Tokens in, a memory out."""

from typing import Literal

from torch import nn

from regard.core import masks
from regard.core.sequences import Memory, Timeline, Tokens
from regard.core.spec import Spec
from regard.parts.embeddings import EmbeddingSpec
from regard.stacks.stack import StackSpec


class EncoderSpec(Spec):
    embedding: EmbeddingSpec
    stack: StackSpec
    sees: Literal["all", "earlier"] = "all"
    """What a position may look at: every other, or only those before it, as a language model does."""

    def build(self, vocabulary: int) -> "Encoder":
        return Encoder(self, vocabulary)


class Encoder(nn.Module):
    """Reads a whole sequence at once."""

    def __init__(self, spec: EncoderSpec, vocabulary: int) -> None:
        super().__init__()
        self.embedding = spec.embedding.build(vocabulary)
        self.stack = spec.stack.build(self.embedding.width, memory_width=None)
        self.width = self.stack.width
        self.visibility = masks.causal if spec.sees == "earlier" else None

    @property
    def longest(self) -> int | None:
        """Tokens that can be read; None when there is no limit."""
        return self.embedding.longest

    def forward(self, tokens: Tokens) -> Memory:
        timeline = Timeline.follow(None, tokens.real, self.visibility)
        x = self.embedding(tokens, timeline.position_now)
        states, _ = self.stack(x, timeline, self.stack.start(len(tokens.ids), None))
        return Memory(states, tokens.real)
