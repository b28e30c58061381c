"""Tokens in, a memory out."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.core import masks
from regard.core.sequences import Memory, Timeline, Tokens
from regard.core.spec import Spec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.mixing import LayerMixSpec
from regard.stacks.stack import StackSpec


class EncoderSpec(Spec):
    embedding: EmbeddingSpec
    stack: StackSpec
    sees: Literal["all", "earlier"] = "all"
    """What a position may look at: every other, or only those before it, as a language model does."""
    mix: LayerMixSpec | None = None
    """Give a weighted sum of all layers, that of the embedding included; null: the last layer."""

    def build(self, vocabulary: int) -> "Encoder":
        return Encoder(self, vocabulary)


class Encoder(nn.Module):
    """Reads a whole sequence at once."""

    def __init__(self, spec: EncoderSpec, vocabulary: int) -> None:
        super().__init__()
        self.embedding = spec.embedding.build(vocabulary)
        self.stack = spec.stack.build(self.embedding.width, memory_width=None)
        self.mix = None if spec.mix is None else spec.mix.build([self.embedding.width, *self.stack.widths])
        self.width = self.stack.width if self.mix is None else self.mix.width
        self.visibility = masks.causal if spec.sees == "earlier" else None

    @property
    def longest(self) -> int | None:
        """Tokens that can be read; None when there is no limit."""
        return self.embedding.longest

    def forward(self, tokens: Tokens) -> Memory:
        layers = self.layers(tokens)
        return Memory(layers[-1] if self.mix is None else self.mix(layers), tokens.real)

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """What each layer makes of the tokens; the first is the embedding."""
        timeline = Timeline.follow(None, tokens.real, self.visibility)
        x = self.embedding(tokens, timeline.position_now)
        layers, _ = self.stack.each(x, timeline, self.stack.start(len(tokens.ids), None))
        return [x, *layers]
