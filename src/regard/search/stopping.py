"""When a beam may stop looking at a sentence, before it reaches its greatest length."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.spec import Spec


class Standing(NamedTuple):
    """How a search stands, one row per sentence still searched."""

    finished: Int[Tensor, "sentences"]
    """How many hypotheses finished so far."""
    worst: Float[Tensor, "sentences"]
    """Score of the worst finished hypothesis that would be returned now; -inf while there are too few."""
    live: Float[Tensor, "sentences"]
    """Log-probability (not yet normalised) of the best hypothesis that may still go on."""
    longest: Int[Tensor, "sentences"]
    """No answer can have more tokens than this, the end counted."""
    alpha: float
    """Length normalisation, never negative."""


StopRule: TypeAlias = Callable[[Standing], Bool[Tensor, "sentences"]]


class EnoughFinished:
    """Stop a sentence once ``finished`` of its hypotheses ended."""

    def __init__(self, finished: int) -> None:
        self.finished = finished

    def __call__(self, standing: Standing) -> Bool[Tensor, "sentences"]:
        return standing.finished >= self.finished


def no_better_possible(standing: Standing) -> Bool[Tensor, "sentences"]:
    """Stop a sentence once no live hypothesis can still get into the answer (Huang et al. 2017).

    A live hypothesis with log-probability c only loses by going on: log P(y) ≤ c ≤ 0. Its score
    log P(y) / |y|^α with α ≥ 0 is then at most c / T^α, T being the greatest length allowed. With α = 0
    the bound is tight; with α > 0 it is loose for large T, and the search may run long. The answer is the
    one that the same beam would give if it always went on to T steps.
    """
    alpha = standing.alpha
    bound = standing.live / standing.longest.to(standing.live.dtype) ** alpha
    return (standing.worst > float("-inf")) & (bound <= standing.worst)


class StopSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "enough_finished": "regard.search.stopping:EnoughFinishedSpec",
        "no_better_possible": "regard.search.stopping:NoBetterPossibleSpec",
    }

    def build(self, size: int, best: int) -> StopRule:
        """The rule for a beam of ``size`` that returns the ``best`` best."""
        raise NotImplementedError


class EnoughFinishedSpec(StopSpec):
    finished: int | None = Field(None, ge=1)
    """Stop a sentence when so many hypotheses finished; None: as many as the beam is wide. More than that is
    also called patience (Kasai et al. 2022)."""

    def build(self, size: int, best: int) -> StopRule:
        finished = size if self.finished is None else self.finished
        if finished < best:
            raise UsageError(
                f"stop.finished: got {finished}, but the {best} best are asked for (best={best})"
            )
        return EnoughFinished(finished)


class NoBetterPossibleSpec(StopSpec):
    def build(self, size: int, best: int) -> StopRule:
        return no_better_possible
