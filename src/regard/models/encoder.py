"""Tokens in, a memory out."""

from torch import nn

from regard.core.sequences import Memory, Timeline, Tokens
from regard.core.spec import Spec
from regard.parts.embeddings import EmbeddingSpec
from regard.stacks.stack import StackSpec


class EncoderSpec(Spec):
    embedding: EmbeddingSpec
    stack: StackSpec

    def build(self, vocabulary: int) -> "Encoder":
        return Encoder(self, vocabulary)


class Encoder(nn.Module):
    """Reads a whole sequence at once; every position may see every other."""

    def __init__(self, spec: EncoderSpec, vocabulary: int) -> None:
        super().__init__()
        self.embedding = spec.embedding.build(vocabulary)
        self.stack = spec.stack.build(self.embedding.width, memory_width=None)
        self.width = self.stack.width

    def forward(self, tokens: Tokens) -> Memory:
        timeline = Timeline.follow(None, tokens.real)
        x = self.embedding(tokens.ids, timeline.position_now)
        states, _ = self.stack(x, timeline, self.stack.start(len(tokens.ids), None))
        return Memory(states, tokens.real)
