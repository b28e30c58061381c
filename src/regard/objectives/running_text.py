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


@runtime_checkable
class TextReader(Reader, Protocol):
    """A model that reads text and predicts how it goes on."""

    def start(self, batch: int) -> State: ...

    def cost(
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"], smoothing: float
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
    def __init__(self, spec: RunningTextSpec) -> None:
        self.smoothing, self.small, self.slow = spec.smoothing, spec.small, spec.slow

    def __call__(
        self, model: nn.Module, batch: TextLike, progress: Progress, carried: State = None
    ) -> Outcome:
        reader = cast(TextReader, model)
        goes_on = batch.continues and carried is not None
        state = carried if goes_on else reader.start(len(batch.given.ids))
        x, state = reader.read(batch.given, state)
        targets = batch.wanted.flatten()
        loss = reader.cost(x.flatten(0, 1), targets, self.smoothing)
        if self.small or self.slow:
            loss = loss + self._calm(x) * len(targets)
        return Outcome(loss, len(targets), {}, detach(state))

    def form_of_carried(self, model: nn.Module) -> State:
        reader = cast(TextReader, model)
        device = next(model.parameters()).device
        with torch.no_grad():
            one = Tokens.whole(torch.zeros(1, 1, dtype=torch.long, device=device))
            return reader.read(one, reader.start(1))[1]

    def _calm(self, x: Float[Tensor, "batch time width"]) -> Tensor:
        """α mean(h²) + β mean((h_t − h_{t−1})²)."""
        steps = x[:, 1:] - x[:, :-1] if x.shape[1] > 1 else torch.zeros_like(x)
        return self.small * x.square().mean() + self.slow * steps.square().mean()
