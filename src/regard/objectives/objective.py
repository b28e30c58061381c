"""The contract between a model, its data and the training loop."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.spec import Spec


class Progress(NamedTuple):
    """Where training stands; objectives that change over time are functions of it."""

    step: int
    epoch: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What one batch cost: the loss summed over its predictions, and how many there were."""

    loss: Float[Tensor, ""]
    count: int
    parts: dict[str, float]


@runtime_checkable
class Objective(Protocol):
    def __call__(self, model: nn.Module, batch: Any, progress: Progress) -> Outcome: ...


class ObjectiveSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "next_token": "regard.objectives.next_token:NextTokenSpec",
    }

    def build(self) -> Objective:
        raise NotImplementedError

    def for_validation(self) -> "ObjectiveSpec":
        """The same task without what only helps learning."""
        return self
