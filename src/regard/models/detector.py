"""A reader that tells tokens that belong from those that a smaller reader put in their place.

Both learn together and share what is known of words (ELECTRA, Clark et al. 2020). The larger one is what
answers, and what other models start from.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.randomness import current_generator
from regard.core.sequences import Memory, Places, Tokens
from regard.heads.detection import DetectionSpec
from regard.models.encoder import EncoderSpec
from regard.models.masked import MaskedModel, MaskedModelSpec
from regard.models.model import ModelSpec
from regard.parts.embeddings import Embedding
from regard.parts.pooling import FirstSpec, PoolingSpec


class DetectorSpec(ModelSpec):
    encoder: EncoderSpec
    """What tells."""
    generator: MaskedModelSpec
    """What guesses hidden tokens, to deceive it."""
    head: DetectionSpec = DetectionSpec()
    shared: bool = True
    """One table of tokens, and what is added to it, for both (there, §3.2)."""

    def build(self, sizes: Mapping[str, int]) -> "Detector":
        return Detector(self, sizes)

    def reader(self) -> EncoderSpec:
        return self.encoder

    def summary(self) -> PoolingSpec:
        """At its first mark."""
        return FirstSpec()


class Detector(nn.Module):
    def __init__(self, spec: DetectorSpec, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(sizes["text"])
        self.generator = spec.generator.build(sizes)
        self.head = spec.head.build(self.encoder.width)
        if spec.shared:
            share(self.generator, self.encoder.embedding, tied=spec.generator.tied)

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

    @torch.no_grad()
    def deceive(
        self,
        states: Float[Tensor, "asked width"],
        tokens: Tokens,
        places: Places,
        wanted: Int[Tensor, "asked"],
    ) -> tuple[Tokens, Bool[Tensor, "batch time"]]:
        """The text as the generator guesses it from its ``states`` at hidden places, and what it replaced."""
        return with_guesses(tokens, places, wanted, drawn(self.generator.predict(states)))

    def doubt(self, memory: Memory) -> Float[Tensor, "batch time"]:
        """Logits of not belonging there."""
        scores: Tensor = self.head(memory.states)
        return scores


def share(generator: MaskedModel, embedding: Embedding, tied: bool) -> None:
    """The generator's tables become those of ``embedding``; what leads from them to its width does not."""
    own = generator.encoder.embedding
    if own.tokens.weight.shape != embedding.tokens.weight.shape:
        raise UsageError(
            "tables that are shared must be as wide as each other (embedding.table): the generator's is "
            f"{own.tokens.weight.shape[1]} wide, the reader's {embedding.tokens.weight.shape[1]}"
        )
    own.tokens = embedding.tokens
    if own.positions is not None:
        own.positions = embedding.positions
    if own.segments is not None:
        own.segments = embedding.segments
    if tied:
        generator.words.words.weight = embedding.tokens.weight


def drawn(logits: Float[Tensor, "rows vocabulary"]) -> Int[Tensor, "rows"]:
    """One token a row, by its probability: the largest of logits with Gumbel's noise (Gumbel 1954)."""
    uniform = torch.rand(logits.shape, generator=current_generator()).to(logits.device)
    noise = -torch.log(-torch.log(uniform.clamp_(1e-20, 1 - 1e-7)))
    return (logits.float() + noise).argmax(-1)


def with_guesses(
    tokens: Tokens, places: Places, wanted: Int[Tensor, "asked"], guesses: Int[Tensor, "asked"]
) -> tuple[Tokens, Bool[Tensor, "batch time"]]:
    """The text with guesses in place of what was hidden, and where they are not what was there.

    A guess that happens to be right is no replacement (there, eq. 2).
    """
    rows, columns = places.real.nonzero(as_tuple=True)
    at = places.at[rows, columns]
    ids, replaced = tokens.ids.clone(), torch.zeros_like(tokens.real)
    ids[rows, at] = guesses
    replaced[rows, at] = guesses != wanted
    return tokens._replace(ids=ids), replaced
