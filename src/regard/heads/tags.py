"""One answer for every place asked about: tags of words, one by one or as a chain."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Places
from regard.heads.head import Cost, Head, HeadSpec, States
from regard.parts.dropout import Dropout
from regard.parts.feedforward import initialise


class TagsSpec(HeadSpec):
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Of the states that tags are read off."""

    def build(self, width: int, labels: int) -> "Tags":
        return Tags(self, width, labels)


class Tags(Head):
    def __init__(self, spec: TagsSpec, width: int, labels: int) -> None:
        super().__init__()
        self.dropout = Dropout(spec.dropout)
        self.answers = initialise(nn.Linear(width, labels))

    def forward(self, states: States) -> Float[Tensor, "batch asked labels"]:
        assert states.places is not None, "tags belong to places"
        scores: Tensor = self.answers(self.dropout(states.places.pick(states.x)))
        return scores

    def cost(
        self,
        scores: Float[Tensor, "batch asked labels"],
        wanted: Int[Tensor, "batch asked"] | Float[Tensor, "batch asked"],
        places: Places | None,
    ) -> Cost:
        assert places is not None, "tags belong to places"
        loss = F.cross_entropy(scores[places.real], wanted[places.real], reduction="sum")
        return Cost(loss, int(places.real.sum()))
