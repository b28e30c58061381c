"""From token ids to vectors: the token's own, plus where it stands, plus which segment it belongs to."""

import math

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.core.spec import Spec
from regard.core.tape import watching
from regard.parts.dropout import Dropout, LockedDropout, without_some
from regard.parts.feedforward import initialise
from regard.parts.norms import NormSpec
from regard.parts.positions import NoPositionSpec, PositionSpec
from regard.parts.spelling import SpellingSpec


class EmbeddingSpec(Spec):
    width: int = Field(gt=0)
    positions: PositionSpec = NoPositionSpec()
    scale: bool = False
    """Multiply token vectors by √width before positions are added (Vaswani et al. 2017 §3.4)."""
    table: int | None = Field(default=None, gt=0)
    """Width of the table of tokens, and of all that is added to it, where that is led to ``width`` only
    afterwards (Lan et al. 2020 §3.1); None: as wide."""
    segments: int = Field(default=0, ge=0)
    """Kinds of segment (BERT's sentence A and B); 0 for none."""
    spelling: SpellingSpec | None = None
    """Part of each vector is made of the token's letters, or all of it where that is as wide as the table;
    null: all of it is the token's own."""
    letters: SpellingSpec | None = None
    """What its letters add to each vector, nothing to begin with: a reader that has learned without them, and
    of small letters only, goes on from where it was; null: nothing."""
    norm: NormSpec | None = None
    dropout: float = Field(default=0.0, ge=0, lt=1)
    locked: bool = False
    """Switch off the same values at all times (Gal and Ghahramani 2016)."""
    forgets: float = Field(default=0.0, ge=0, lt=1)
    """Share of the words whose vectors are switched off whole, wherever they stand in a batch."""

    @property
    def spelled(self) -> int:
        """Values of each vector that are made of letters."""
        return 0 if self.spelling is None else self.spelling.out

    @property
    def own(self) -> int:
        """Values of each vector that are the token's own."""
        return (self.table or self.width) - self.spelled

    def build(self, vocabulary: int) -> "Embedding":
        return Embedding(self, vocabulary)


class Embedding(nn.Module):
    def __init__(self, spec: EmbeddingSpec, vocabulary: int) -> None:
        super().__init__()
        self.width, table = spec.width, spec.table or spec.width
        self.factor = math.sqrt(table) if spec.scale else 1.0
        own = spec.own
        if own < 0:
            raise UsageError(
                f"an embedding {table} wide has no room for {table - own} values that are spelled"
            )
        self.tokens = nn.Embedding(vocabulary, own)
        if own:
            nn.init.normal_(self.tokens.weight, std=own**-0.5)
        else:  # a table without columns: nothing of a token is its own
            self.tokens.weight.requires_grad_(False)
        self.spelling = spec.spelling.build() if spec.spelling is not None else None
        self.letters = Addition(spec.letters, table) if spec.letters is not None else None
        self.positions = spec.positions.build(table)
        self.longest = self.positions.longest if self.positions is not None else None
        self.segments = nn.Embedding(spec.segments, table) if spec.segments else None
        if self.segments is not None:
            nn.init.normal_(self.segments.weight, std=table**-0.5)
        self.norm = spec.norm.build(table) if spec.norm else None
        self.lead = initialise(nn.Linear(table, spec.width)) if table != spec.width else None
        self.dropout = LockedDropout(spec.dropout) if spec.locked else Dropout(spec.dropout)
        self.forgets = spec.forgets

    def forward(
        self, tokens: Tokens, position: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time width"]:
        table = self.tokens.weight
        if self.training and self.forgets:
            table = without_some(table, self.forgets)
        x = nn.functional.embedding(tokens.ids, table) * self.factor
        if self.spelling is not None:
            assert tokens.letters is not None, "a model that looks at letters is given some"
            x = torch.cat((x, self.spelling(tokens.letters)), dim=-1)
        if self.letters is not None:
            assert tokens.letters is not None, "a model that looks at letters is given some"
            x = x + self.letters(tokens.letters)
        watch = watching(self)
        if watch is not None:
            x = watch("fixed", x)
        if self.positions is not None:
            added = self.positions(position)
            x = x + (added if watch is None else watch("positions", added))
        if self.segments is not None:
            # One text alone is the first of its row.
            x = x + (self.segments.weight[0] if tokens.segments is None else self.segments(tokens.segments))
        if self.norm is not None:
            x = self.norm(x)
        dropped: Tensor = self.dropout(x)
        return dropped if self.lead is None else self.lead(dropped)


class Addition(nn.Module):
    """Letters led to the width of what they are added to; to begin with they say nothing."""

    def __init__(self, spec: SpellingSpec, width: int) -> None:
        super().__init__()
        self.spelling = spec.build()
        self.lead = nn.Linear(spec.out, width, bias=False)
        nn.init.zeros_(self.lead.weight)

    def forward(self, letters: Int[Tensor, "batch time letters"]) -> Float[Tensor, "batch time width"]:
        added: Tensor = self.lead(self.spelling(letters))
        return added
