"""Say what is right of a text: J = −Σ log p(label | text), or what else its head counts as a cost."""

from typing import Protocol, cast, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.sequences import Places, Tokens
from regard.core.state import State
from regard.heads.head import Head
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress


@runtime_checkable
class Judge(Protocol):
    """A model that scores what can be said of a text."""

    @property
    def head(self) -> Head: ...
    def judge(self, tokens: Tokens, places: Places | None) -> Float[Tensor, "batch *asked scores"]: ...


@runtime_checkable
class Judged(Protocol):
    @property
    def tokens(self) -> Tokens: ...
    @property
    def places(self) -> Places | None: ...
    @property
    def wanted(self) -> Tensor: ...


class JudgementSpec(ObjectiveSpec):
    def build(self) -> Objective:
        return Judgement()


class Judgement(Objective):
    def __call__(self, model: nn.Module, batch: Judged, progress: Progress, carried: State = None) -> Outcome:
        judge = cast(Judge, model)
        scores = judge.judge(batch.tokens, batch.places)
        loss, predictions = judge.head.cost(scores, batch.wanted, batch.places)
        return Outcome(loss, predictions, {})
