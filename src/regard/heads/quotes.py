"""Where in a row an answer begins and ends: two scores for every place (Devlin et al. 2019 §4.2)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Places
from regard.heads.head import Cost, Head, HeadSpec, States
from regard.parts.dropout import Dropout
from regard.parts.feedforward import initialise


class QuoteSpec(HeadSpec):
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Of the states that scores are read off."""

    def build(self, width: int, labels: int) -> "QuoteHead":
        return QuoteHead(self, width)


class QuoteHead(Head):
    """P(begin = i) and P(end = j), each a softmax over the places of a row: S·T_i and E·T_j."""

    def __init__(self, spec: QuoteSpec, width: int) -> None:
        super().__init__()
        self.dropout = Dropout(spec.dropout)
        self.answers = initialise(nn.Linear(width, 2))

    def forward(self, states: States) -> Float[Tensor, "batch asked 2"]:
        assert states.places is not None, "answers begin and end at places"
        scores: Tensor = self.answers(self.dropout(states.places.pick(states.x)))
        return scores

    def cost(
        self,
        scores: Float[Tensor, "batch asked 2"],
        wanted: Int[Tensor, "batch 2"] | Float[Tensor, "batch 2"],
        places: Places | None,
    ) -> Cost:
        """−log P(begin) − log P(end), summed over rows."""
        assert places is not None, "answers begin and end at places"
        possible = scores.masked_fill(~places.real[..., None], -torch.inf)
        return Cost(F.cross_entropy(possible, wanted, reduction="sum"), len(scores))
