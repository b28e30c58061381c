"""What a decoder is fed while it learns: the truth, its own words, or something between.

Teacher forcing reads the whole target at once. The others go token by token with carried state, which by
the chunk law works for every family of decoder.
"""

import math
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regard.core.randomness import current_generator
from regard.core.sequences import Tokens
from regard.core.spec import Spec
from regard.core.state import State
from regard.objectives.objective import Progress


@runtime_checkable
class Reader(Protocol):
    def read(self, tokens: Tokens, state: State) -> tuple[Float[Tensor, "batch time width"], State]: ...

    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]: ...


@runtime_checkable
class Forcing(Protocol):
    def __call__(
        self, model: Reader, given: Tokens, state: State, progress: Progress
    ) -> Float[Tensor, "batch time width"]: ...


class ForcingSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "teacher": "regard.objectives.forcing:TeacherForcingSpec",
        "scheduled": "regard.objectives.forcing:ScheduledSamplingSpec",
        "free": "regard.objectives.forcing:FreeRunningSpec",
    }

    def build(self) -> Forcing:
        raise NotImplementedError


class TeacherForcingSpec(ForcingSpec):
    """Always the truth."""

    def build(self) -> Forcing:
        return read_truth


class FreeRunningSpec(ForcingSpec):
    """Always the model's own last word: training as it will be used."""

    def build(self) -> Forcing:
        return lambda model, given, state, progress: read_mixture(model, given, state, truth=0.0)


class ScheduledSamplingSpec(ForcingSpec):
    """The truth with a probability ε that falls as training goes on (Bengio et al. 2015)."""

    decay: Literal["linear", "exponential", "inverse_sigmoid"] = "linear"
    steps: int = Field(default=10_000, gt=0)
    """Linear: steps until ``least``. Inverse sigmoid: the k of k/(k+exp(i/k))."""
    rate: float = Field(default=0.9999, gt=0, lt=1)
    """Exponential: ε = rate^step."""
    least: float = Field(default=0.0, ge=0, le=1)

    def truth(self, step: int) -> float:
        """ε after ``step`` steps."""
        match self.decay:
            case "linear":
                share = 1 - step / self.steps
            case "exponential":
                share = self.rate**step
            case "inverse_sigmoid":
                share = self.steps / (self.steps + math.exp(min(step / self.steps, 700)))
        return max(self.least, min(1.0, share))

    def build(self) -> Forcing:
        return lambda model, given, state, progress: read_mixture(
            model, given, state, self.truth(progress.step)
        )


def read_truth(
    model: Reader, given: Tokens, state: State, progress: Progress
) -> Float[Tensor, "batch time width"]:
    hidden, _ = model.read(given, state)
    return hidden


def read_mixture(
    model: Reader, given: Tokens, state: State, truth: float
) -> Float[Tensor, "batch time width"]:
    """Each input after the first is the truth with probability ``truth``, else the model's best guess."""
    ids, hidden = given.ids[:, 0], []
    for t in range(given.ids.shape[1]):
        x, state = model.read(Tokens(ids[:, None], given.real[:, t : t + 1]), state)
        hidden.append(x)
        if t + 1 < given.ids.shape[1]:
            with torch.no_grad():
                guess = model.predict(x[:, 0]).argmax(-1)
            told = (torch.rand(len(ids), generator=current_generator()) < truth).to(ids.device)
            ids = torch.where(told, given.ids[:, t + 1], guess)
    return torch.cat(hidden, dim=1)
