"""What belongs between the words to its left and those to its right, as one vector (Melamud et al. 2016).

Two recurrences read towards a word from its two sides and stop before it; a small network joins what they
know. Words that fit there lie in the same direction.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Memory, Tokens
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.models.two_way import refuse_mingling
from regard.parts.feedforward import initialise

PADDING, UNKNOWN, BEGIN, END, HIDDEN = range(5)
"""The same ids in every vocabulary that is learned here with a mark for what is hidden (data/units)."""


class BetweenSpec(ModelSpec):
    marks: ClassVar[tuple[int, int, int, int] | None] = (PADDING, UNKNOWN, BEGIN, END)
    tables: ClassVar[Mapping[str, str]] = {"text": "encoder.embedding.tokens"}
    begins: ClassVar[bool] = False

    encoder: EncoderSpec
    """Reads from both sides, which are kept apart."""
    hidden: int = Field(default=256, gt=0)
    """Width between the two layers that join both sides (eq. 1)."""
    width: int = Field(default=128, gt=0)
    """Of what they make, and of the words it is compared with."""
    power: float = Field(default=0.75, ge=0)
    """What frequencies are raised to where words are drawn from everywhere."""

    def build(self, sizes: Mapping[str, int]) -> "Between":
        return Between(self, sizes["text"])

    def reader(self) -> EncoderSpec:
        return self.encoder


class Between(nn.Module):
    noise: Tensor

    def __init__(self, spec: BetweenSpec, vocabulary: int) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(vocabulary)
        refuse_mingling(self.encoder.stack, [block.join.kind() for block in spec.encoder.stack.blocks])
        self.join = nn.Sequential(
            initialise(nn.Linear(self.encoder.width, spec.hidden)),
            nn.ReLU(),
            initialise(nn.Linear(spec.hidden, spec.width)),
        )
        self.words = nn.Embedding(vocabulary, spec.width)
        nn.init.normal_(self.words.weight, std=spec.width**-0.5)
        self.power = spec.power
        producible = torch.ones(vocabulary)
        producible[[PADDING, UNKNOWN, BEGIN, HIDDEN]] = 0.0
        self.register_buffer("noise", producible / producible.sum())

    @property
    def longest(self) -> int | None:
        return self.encoder.longest

    def meet(self, counts: Int[np.ndarray, "vocabulary"]) -> None:
        """Learn how frequent words are: what is drawn from everywhere, and what is likely without context."""
        weights = torch.from_numpy(counts).to(self.noise).pow(self.power) * (self.noise > 0)
        self.noise = weights / weights.sum()

    def read(self, tokens: Tokens) -> Memory:
        """At every place a vector of what stands around it; of the token itself it knows nothing."""
        forward, backward = self.encoder(self._known(tokens)).states.chunk(2, dim=-1)
        left = nn.functional.pad(forward[:, :-1], (0, 0, 1, 0))
        right = nn.functional.pad(backward[:, 1:], (0, 0, 0, 1))
        return Memory(self.join(torch.cat((left, right), dim=-1)), tokens.real)

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """Those of what reads, and what it makes of them."""
        return [*self.encoder.layers(self._known(tokens)), self.read(tokens).states]

    def seen(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]:
        """How words look from between others."""
        found: Tensor = self.words(words)
        return found

    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]:
        """Logits of what belongs here: p(w | around) ∝ q(w) exp(w·x) once w·x is log p(w | around) / k q(w)
        (Levy and Goldberg 2014 eq. 11)."""
        return x @ self.words.weight.mT + self.noise.log()

    def _known(self, tokens: Tokens) -> Tokens:
        """A text begins where another has ended, and what is hidden is not known."""
        ids = torch.where(tokens.ids == BEGIN, END, tokens.ids)
        return tokens._replace(ids=torch.where(ids == HIDDEN, UNKNOWN, ids))
