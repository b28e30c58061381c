"""Say what is right of a text: J = −Σ log p(label | text), or what else its head counts as a cost.

Beside that a reader may go on learning what it learned before, to write the texts it judges.
"""

from typing import Protocol, cast, runtime_checkable

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Memory, Places, Tokens
from regard.core.spec import Spec
from regard.core.state import State
from regard.heads.head import Head
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress


@runtime_checkable
class Judge(Protocol):
    """A model that scores what can be said of a text."""

    @property
    def head(self) -> Head: ...
    def read(self, tokens: Tokens) -> Memory: ...
    def judged(self, memory: Memory, places: Places | None) -> Float[Tensor, "batch *asked scores"]: ...
    def cost_of_writing(
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"]
    ) -> Float[Tensor, ""]: ...


@runtime_checkable
class Judged(Protocol):
    @property
    def tokens(self) -> Tokens: ...
    @property
    def places(self) -> Places | None: ...
    @property
    def wanted(self) -> Tensor: ...


class WritingSpec(Spec):
    """L₃ = L₂ + λ L₁ (Radford et al. 2018 eq. 5), L₁ a mean over tokens as in their code."""

    weight: float = Field(default=0.5, gt=0)
    """λ."""

    def build(self) -> "Writing":
        return Writing(self.weight)


class JudgementSpec(ObjectiveSpec):
    beside: WritingSpec | None = None
    """What is learned at the same time; null: nothing."""

    def build(self) -> Objective:
        return Judgement(None if self.beside is None else self.beside.build())

    def for_validation(self) -> ObjectiveSpec:
        return JudgementSpec()


class Writing:
    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, judge: Judge, memory: Memory, tokens: Tokens) -> Float[Tensor, ""]:
        """The mean cost of every token but the first, weighed."""
        follows = tokens.real[:, 1:]
        cost = judge.cost_of_writing(memory.states[:, :-1][follows], tokens.ids[:, 1:][follows])
        return self.weight * cost / follows.sum().clamp_min(1)


class Judgement(Objective):
    def __init__(self, beside: Writing | None = None) -> None:
        self.beside = beside

    def __call__(self, model: nn.Module, batch: Judged, progress: Progress, carried: State = None) -> Outcome:
        judge = cast(Judge, model)
        memory = judge.read(batch.tokens)
        scores = judge.judged(memory, batch.places)
        loss, predictions = judge.head.cost(scores, batch.wanted, batch.places)
        if self.beside is None:
            return Outcome(loss, predictions, {})
        writing = self.beside(judge, memory, batch.tokens) * predictions
        parts = {"judging": float(loss.detach()), "writing": float(writing.detach())}
        return Outcome(loss + writing, predictions, parts)
