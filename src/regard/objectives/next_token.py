"""Predict the next token: J = −Σ log p(y_t | y_<t, x), with label smoothing (Szegedy et al. 2016 §7)."""

from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Tokens
from regard.core.state import State
from regard.objectives.forcing import ForcingSpec, Reader, TeacherForcingSpec
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress
from regard.objectives.teaching import Teaching
from regard.parts.cross_entropy import Advice


@runtime_checkable
class Generator(Reader, Protocol):
    """A model that continues a target sequence given a source."""

    def start(self, source: Tokens) -> State: ...

    def cost(
        self,
        x: Float[Tensor, "rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]: ...

    def cost_of_readings(
        self,
        x: Float[Tensor, "readings rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        agreement: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]: ...


@runtime_checkable
class PairLike(Protocol):
    @property
    def source(self) -> Tokens: ...
    @property
    def target(self) -> Tokens: ...


class NextTokenSpec(ObjectiveSpec):
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Share of the probability spread over the whole vocabulary."""
    forcing: ForcingSpec = TeacherForcingSpec()
    agreement: float = Field(default=0.0, ge=0)
    """How much two readings of a pair, each with other units dropped, are pulled together: the α of R-Drop
    (Liang et al. 2021). 0: every pair is read once, in half the time."""

    def build(self) -> Objective:
        return NextToken(self)

    def for_validation(self) -> ObjectiveSpec:
        return NextTokenSpec()


class NextToken(Objective):
    def __init__(self, spec: NextTokenSpec, teaching: Teaching | None = None) -> None:
        self.spec, self.teaching = spec, teaching
        self.smoothing = spec.smoothing
        self.forcing = spec.forcing.build()
        self.agreement = spec.agreement

    def taught_by(self, teaching: Teaching) -> Objective:
        return NextToken(self.spec, teaching)

    def __call__(
        self, model: nn.Module, batch: PairLike, progress: Progress, carried: State = None
    ) -> Outcome:
        generator = cast(Generator, model)
        given, wanted = shifted(batch.target)
        # Only real positions reach the output layer, the widest of all.
        targets = wanted.ids[wanted.real]
        advice = self._advice(batch.source, given, wanted)
        if not self.agreement:
            hidden = self.forcing(generator, given, generator.start(batch.source), progress)
            loss = generator.cost(hidden[wanted.real], targets, self.smoothing, advice)
            return Outcome(loss, len(targets), {})
        state = generator.start(batch.source.twice())
        hidden = self.forcing(generator, given.twice(), state, progress)
        readings = torch.stack([reading[wanted.real] for reading in hidden.chunk(2)])
        loss = generator.cost_of_readings(readings, targets, self.smoothing, self.agreement, advice)
        return Outcome(loss, len(targets), {})

    def _advice(self, source: Tokens, given: Tokens, wanted: Tokens) -> Advice | None:
        """A teacher reads what is written, whatever the learner is given instead."""
        if self.teaching is None:
            return None
        return self.teaching.advice(given, self.teaching.read(source), wanted.real)[0]


def shifted(target: Tokens) -> tuple[Tokens, Tokens]:
    """What is given and what is wanted: [begin, y₁ … y_n] and [y₁ … y_n, end]."""
    given = Tokens(target.ids[:, :-1], target.real[:, 1:])
    return given, Tokens(target.ids[:, 1:], target.real[:, 1:])
