"""What is read off the last layer, and what it costs to be wrong: the contract of heads that judge."""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.core.sequences import Places
from regard.core.spec import Spec
from regard.parts.pooling import MaxSpec, PoolingSpec


class States(NamedTuple):
    """The last layer, and where in it is text and where something is asked about."""

    x: Float[Tensor, "batch time width"]
    real: Bool[Tensor, "batch time"]
    places: Places | None


class Cost(NamedTuple):
    """Summed over predictions, and how many there were."""

    loss: Float[Tensor, ""]
    predictions: int


class Head(nn.Module):
    @abstractmethod
    def forward(self, states: States) -> Float[Tensor, "batch *asked scores"]:
        """Scores of everything that can be answered."""

    @abstractmethod
    def cost(
        self,
        scores: Float[Tensor, "batch *asked scores"],
        wanted: Int[Tensor, "examples asked"] | Float[Tensor, "examples asked"],
        places: Places | None,
    ) -> Cost:
        """Of what was wanted, by these scores."""


class HeadSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "label": "regard.heads.labels:LabelSpec",
        "number": "regard.heads.labels:NumberSpec",
        "choice": "regard.heads.labels:ChoiceSpec",
        "quote": "regard.heads.quotes:QuoteSpec",
        "tags": "regard.heads.tags:TagsSpec",
    }

    def build(self, width: int, labels: int) -> Head:
        """``labels``: how many classes there are; 0 where there are none."""
        raise NotImplementedError

    def summary(self) -> PoolingSpec:
        """Where a reader under such a head learned to say what it has read: everywhere, unless it is said."""
        return MaxSpec()
