"""Two language models that read one text from its two ends, and share its words (Peters et al. 2018 §3.1).

The first half of a state has seen nothing after its token, the second half nothing before it: so each can be
asked for what it has not seen. Were they one, words would see themselves two layers up.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Memory, Tokens
from regard.heads.vocabulary import VocabularySpec
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.parts.mixing import LayerMixSpec
from regard.stacks.stack import Stack

_AT_ONCE = 1024


class TwoWayModelSpec(ModelSpec):
    begins: ClassVar[bool] = False
    tables: ClassVar[Mapping[str, str]] = {"text": "encoder.embedding.tokens"}

    encoder: EncoderSpec
    head: VocabularySpec = VocabularySpec(bias=True)
    """One for both directions."""

    def build(self, sizes: Mapping[str, int]) -> "TwoWayModel":
        return TwoWayModel(self, sizes["text"])

    def reader(self) -> EncoderSpec:
        """All layers, weighted as a task needs them."""
        return self.encoder.model_copy(update={"mix": self.encoder.mix or LayerMixSpec()})


class TwoWayModel(nn.Module):
    def __init__(self, spec: TwoWayModelSpec, vocabulary: int) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(vocabulary)
        refuse_mingling(self.encoder.stack, [block.join.kind() for block in spec.encoder.stack.blocks])
        self.words = spec.head.build(self.encoder.width // 2, vocabulary, None)

    @property
    def longest(self) -> int | None:
        return self.encoder.longest

    def read(self, tokens: Tokens) -> Memory:
        memory: Memory = self.encoder(tokens)
        return memory

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """The embedded tokens, and the states after every layer, both ways side by side."""
        layers: list[Tensor] = self.encoder.layers(tokens)
        return layers

    def ways(
        self, memory: Memory
    ) -> tuple[Float[Tensor, "batch time half"], Float[Tensor, "batch time half"]]:
        """What is known from the left, and what from the right, each with the token itself."""
        forward, backward = memory.states.chunk(2, dim=-1)
        return forward, backward

    def predict(self, x: Float[Tensor, "*rows half"]) -> Float[Tensor, "*rows vocabulary"]:
        """Logits of the next token on the way."""
        logits: Tensor = self.words(x)
        return logits

    def cost(
        self, x: Float[Tensor, "rows half"], wanted: Int[Tensor, "rows"], smoothing: float
    ) -> Float[Tensor, ""]:
        return self.words.cost(x, wanted, smoothing)

    def log_probs(self, x: Float[Tensor, "rows half"]) -> Float[Tensor, "rows vocabulary"]:
        """Some rows at a time: a vocabulary is wide."""
        return torch.cat([self.predict(some).float().log_softmax(-1) for some in torch.split(x, _AT_ONCE)])


def refuse_mingling(stack: Stack, joins: list[str | None]) -> None:
    """Directions arise in the first layer and are kept apart in all others."""
    sides = [mixer.sides for layer in stack.layers for mixer in layer.mixers]  # type: ignore[union-attr]
    if sides[0] != "made" or any(side != "kept" for side in sides[1:]):
        raise UsageError(
            "a model of two directions begins with one recurrence of direction=both and goes on with those "
            "of direction=apart: anything else would show words to themselves"
        )
    if stack.final_norm is not None or any(join not in ("plain", "residual") for join in joins):
        raise UsageError(
            "a norm over both directions would show words to themselves: join=plain or residual, "
            "final_norm=null"
        )
