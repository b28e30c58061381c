"""Predict the next token of a text that runs on: J = −Σ log p(w_t | w_<t).

Where one batch continues another, the state goes along and the gradient does not: truncated
backpropagation through time (Williams and Peng 1990).
"""

from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Tokens
from regard.core.state import State, detach
from regard.objectives.forcing import Reader
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress
from regard.objectives.teaching import Teaching
from regard.parts.cross_entropy import Advice


@runtime_checkable
class TextReader(Reader, Protocol):
    """A model that reads text and predicts how it goes on."""

    def start(self, batch: int) -> State: ...

    def cost(
        self,
        x: Float[Tensor, "rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]: ...


@runtime_checkable
class TextLike(Protocol):
    @property
    def given(self) -> Tokens: ...
    @property
    def wanted(self) -> Int[Tensor, "batch time"]: ...
    @property
    def continues(self) -> bool: ...


class RunningTextSpec(ObjectiveSpec):
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Share of the probability spread over the whole vocabulary."""
    small: float = Field(default=0.0, ge=0)
    """Cost of large outputs of the last layer (activation regularisation, Merity et al. 2017)."""
    slow: float = Field(default=0.0, ge=0)
    """Cost of outputs that change fast from token to token (temporal activation regularisation)."""

    def build(self) -> Objective:
        return RunningText(self)

    def for_validation(self) -> ObjectiveSpec:
        return RunningTextSpec()


class RunningText(Objective):
    def __init__(self, spec: RunningTextSpec, teaching: Teaching | None = None) -> None:
        self.spec, self.teaching = spec, teaching
        self.smoothing, self.small, self.slow = spec.smoothing, spec.small, spec.slow

    def taught_by(self, teaching: Teaching) -> Objective:
        return RunningText(self.spec, teaching)

    def __call__(
        self, model: nn.Module, batch: TextLike, progress: Progress, carried: State = None
    ) -> Outcome:
        reader = cast(TextReader, model)
        state, of_teacher = self._begun(reader, batch, carried)
        x, state = reader.read(batch.given, state)
        targets, advice = batch.wanted.flatten(), None
        if self.teaching is not None:
            everything = torch.ones_like(batch.given.real)
            advice, of_teacher = self.teaching.advice(batch.given, of_teacher, everything)
        loss = reader.cost(x.flatten(0, 1), targets, self.smoothing, advice)
        if self.small or self.slow:
            loss = loss + self._calm(x) * len(targets)
        return Outcome(loss, len(targets), {}, detach((state, of_teacher)))

    def _begun(self, reader: TextReader, batch: TextLike, carried: State) -> tuple[State, State]:
        """Where the learner and its teacher stand before this batch."""
        if batch.continues and carried is not None:
            state, of_teacher = carried
            return state, of_teacher
        rows = len(batch.given.ids)
        return reader.start(rows), None if self.teaching is None else self.teaching.start(rows)

    def form_of_carried(self, model: nn.Module) -> State:
        reader = cast(TextReader, model)
        device = next(model.parameters()).device
        with torch.no_grad():
            one = Tokens.whole(torch.zeros(1, 1, dtype=torch.long, device=device))
            own = reader.read(one, reader.start(1))[1]
            if self.teaching is None:
                return own, None
            return own, self.teaching.advice(one, self.teaching.start(1), one.real)[1]

    def _calm(self, x: Float[Tensor, "batch time width"]) -> Tensor:
        """α mean(h²) + β mean((h_t − h_{t−1})²)."""
        steps = x[:, 1:] - x[:, :-1] if x.shape[1] > 1 else torch.zeros_like(x)
        return self.small * x.square().mean() + self.slow * steps.square().mean()
