"""From token ids to vectors: the token's own, plus where it stands, plus which segment it belongs to."""

import math

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.spec import Spec
from regard.parts.dropout import Dropout, LockedDropout, without_some
from regard.parts.norms import NormSpec
from regard.parts.positions import NoPositionSpec, PositionSpec


class EmbeddingSpec(Spec):
    width: int = Field(gt=0)
    positions: PositionSpec = NoPositionSpec()
    scale: bool = False
    """Multiply token vectors by √width before positions are added (Vaswani et al. 2017 §3.4)."""
    segments: int = Field(default=0, ge=0)
    """Kinds of segment (BERT's sentence A and B); 0 for none."""
    norm: NormSpec | None = None
    dropout: float = Field(default=0.0, ge=0, lt=1)
    locked: bool = False
    """Switch off the same values at all times (Gal and Ghahramani 2016)."""
    forgets: float = Field(default=0.0, ge=0, lt=1)
    """Share of the words whose vectors are switched off whole, wherever they stand in a batch."""

    def build(self, vocabulary: int) -> "Embedding":
        return Embedding(self, vocabulary)


class Embedding(nn.Module):
    def __init__(self, spec: EmbeddingSpec, vocabulary: int) -> None:
        super().__init__()
        self.width = spec.width
        self.factor = math.sqrt(spec.width) if spec.scale else 1.0
        self.tokens = nn.Embedding(vocabulary, spec.width)
        nn.init.normal_(self.tokens.weight, std=spec.width**-0.5)
        self.positions = spec.positions.build(spec.width)
        self.longest = self.positions.longest if self.positions is not None else None
        self.segments = nn.Embedding(spec.segments, spec.width) if spec.segments else None
        self.norm = spec.norm.build(spec.width) if spec.norm else None
        self.dropout = LockedDropout(spec.dropout) if spec.locked else Dropout(spec.dropout)
        self.forgets = spec.forgets

    def forward(
        self,
        ids: Int[Tensor, "batch time"],
        position: Int[Tensor, "batch time"],
        segment: Int[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        table = self.tokens.weight
        if self.training and self.forgets:
            table = without_some(table, self.forgets)
        x = nn.functional.embedding(ids, table) * self.factor
        if self.positions is not None:
            x = x + self.positions(position)
        if self.segments is not None and segment is not None:
            x = x + self.segments(segment)
        if self.norm is not None:
            x = self.norm(x)
        dropped: Tensor = self.dropout(x)
        return dropped
