"""One answer for every place asked about: tags of words, one by one or as a chain of neighbours."""

from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Places
from regard.core.spec import Spec
from regard.heads.chain import Chain
from regard.heads.head import Cost, Head, HeadSpec, States
from regard.parts.dropout import Dropout
from regard.parts.feedforward import initialise


class ChainSpec(Spec):
    """A conditional random field over the tags of a row (Lafferty et al. 2001)."""

    def build(self, labels: int) -> Chain:
        return Chain(labels, None)


class TagsSpec(HeadSpec):
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Of the states that tags are read off."""
    chain: ChainSpec | None = None
    """How tags follow one another; null: each is chosen by itself."""

    def build(self, width: int, labels: int) -> "Tags":
        return Tags(self, width, labels)


@runtime_checkable
class Tagger(Protocol):
    """What can be asked of a head that tags."""

    def best(
        self,
        scores: Float[Tensor, "batch asked labels"],
        places: Places,
        allowed: Bool[Tensor, "states states"] | None,
    ) -> list[list[int]]: ...

    def probabilities(
        self, scores: Float[Tensor, "batch asked labels"], places: Places
    ) -> Float[Tensor, "batch asked labels"]: ...


class Tags(Head):
    def __init__(self, spec: TagsSpec, width: int, labels: int) -> None:
        super().__init__()
        self.dropout = Dropout(spec.dropout)
        self.answers = initialise(nn.Linear(width, labels))
        self.chain = None if spec.chain is None else spec.chain.build(labels)

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
        count = int(places.real.sum())
        if self.chain is not None:
            return Cost(-self.chain.log_likelihood(scores, wanted, places.real).sum(), count)
        return Cost(F.cross_entropy(scores[places.real], wanted[places.real], reduction="sum"), count)

    def best(
        self,
        scores: Float[Tensor, "batch asked labels"],
        places: Places,
        allowed: Bool[Tensor, "states states"] | None,
    ) -> list[list[int]]:
        """The likeliest tags of every row, among sequences whose moves are ``allowed``."""
        chain = Chain(scores.shape[-1], allowed).to(scores.device)
        if self.chain is not None:
            chain.load_state_dict(self.chain.state_dict())
        return chain.best(scores, places.real)

    def probabilities(
        self, scores: Float[Tensor, "batch asked labels"], places: Places
    ) -> Float[Tensor, "batch asked labels"]:
        """Of every tag at every place, whatever the others are."""
        if self.chain is None:
            return torch.softmax(scores, dim=-1)
        return self.chain.marginals(scores, places.real)
