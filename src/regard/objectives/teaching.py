"""What another model finds likely is learned beside what is written (distillation, Hinton et al. 2015).

A word that follows says that one word was right. A teacher also says which others might have been: it reads
what the learner reads, and its probabilities of every next word are a share of what is wanted (Kim and Rush
2016, eq. 7). So a large model makes a small one, and a mixture of several a single one.
"""

from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Tokens
from regard.core.spec import Spec
from regard.core.state import State
from regard.parts.cross_entropy import Advice


class TeachingSpec(Spec):
    runs: tuple[str, ...] = ()
    """Runs that teach, all with the vocabulary of what learns; the mean of several is learned."""
    share: float = Field(default=0.5, gt=0, le=1)
    """How much they count beside the words that follow: 1 is to learn from them alone."""


@runtime_checkable
class Teacher(Protocol):
    """Anything that reads tokens and says what may follow; what it knows at a position is its own affair."""

    def start(self, given: Tokens | int) -> State: ...

    def read(self, tokens: Tokens, state: State) -> tuple[Any, State]: ...

    def predict(self, x: Any) -> Float[Tensor, "*rows vocabulary"]: ...


class Teaching(NamedTuple):
    teacher: nn.Module
    share: float
    opening: int | None = None
    """A token that it expects in front of every source."""

    def read(self, source: Tokens) -> State:
        """What it knows before the first word of what is written of a source."""
        return self.start(source if self.opening is None else source.behind(self.opening))

    def start(self, given: Tokens | int) -> State:
        """``given`` is what its kind of model starts from: a source, or a number of rows."""
        with torch.no_grad():
            return cast(Teacher, self.teacher).start(given)

    def advice(self, given: Tokens, state: State, real: Bool[Tensor, "batch time"]) -> tuple[Advice, State]:
        """On what follows each of the ``real`` tokens."""
        teacher = cast(Teacher, self.teacher)
        with torch.no_grad():
            x, state = teacher.read(given, state)
            return Advice(teacher.predict(x)[real].softmax(-1), self.share), state
