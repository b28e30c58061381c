"""The contract between a model, its data and the training loop."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.core.state import State
from regard.objectives.teaching import Teaching


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
    carried: State = None
    """What the next batch may go on from, cut off from the gradient; None: every batch stands alone."""


class Objective(ABC):
    @abstractmethod
    def __call__(self, model: nn.Module, batch: Any, progress: Progress, carried: State = None) -> Outcome:
        """The cost of ``batch``; ``carried`` is what the batch before it left."""

    def taught_by(self, teaching: Teaching) -> "Objective":
        """The same, where what a teacher finds likely is learned, too."""
        raise UsageError(
            "nobody can teach what is learned here: --taught-by is for models that say which word follows, "
            "translators and language models"
        )

    def form_of_carried(self, model: nn.Module) -> State:
        """A state of the form that ``carried`` has, whatever it holds: how one comes back from a file."""
        return None


class ObjectiveSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "next_token": "regard.objectives.next_token:NextTokenSpec",
        "running_text": "regard.objectives.running_text:RunningTextSpec",
        "judgement": "regard.objectives.judgement:JudgementSpec",
        "replaced_tokens": "regard.objectives.replaced_tokens:ReplacedTokensSpec",
        "both_ways": "regard.objectives.both_ways:BothWaysSpec",
        "hidden_tokens": "regard.objectives.hidden_tokens:HiddenTokensSpec",
        "skip_gram": "regard.objectives.negative_sampling:SkipGramSpec",
        "cbow": "regard.objectives.negative_sampling:CbowSpec",
        "between_words": "regard.objectives.between:BetweenWordsSpec",
    }

    def build(self) -> Objective:
        raise NotImplementedError

    def for_validation(self) -> "ObjectiveSpec":
        """The same task without what only helps learning."""
        return self
