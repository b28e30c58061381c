"""Predict the next token and the one before: J = −Σ (log p→(w_t | w_<t) + log p←(w_t | w_>t)).

(Peters et al. 2018 §3.1.) Every window stands alone: what comes after it is not known when it is read.
"""

from typing import Protocol, cast, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.sequences import Memory, Tokens
from regard.core.state import State
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress
from regard.objectives.running_text import TextLike


@runtime_checkable
class TwoWayReader(Protocol):
    def read(self, tokens: Tokens) -> Memory: ...
    def ways(
        self, memory: Memory
    ) -> tuple[Float[Tensor, "batch time half"], Float[Tensor, "batch time half"]]: ...
    def cost(
        self, x: Float[Tensor, "rows half"], wanted: Int[Tensor, "rows"], smoothing: float
    ) -> Float[Tensor, ""]: ...


class BothWaysSpec(ObjectiveSpec):
    def build(self) -> Objective:
        return BothWays()


class BothWays(Objective):
    def __call__(
        self, model: nn.Module, batch: TextLike, progress: Progress, carried: State = None
    ) -> Outcome:
        reader = cast(TwoWayReader, model)
        forward, backward = reader.ways(reader.read(batch.given))
        following, before = batch.wanted.flatten(), batch.given.ids[:, :-1].flatten()
        ahead = reader.cost(forward.flatten(0, 1), following, 0.0)
        back = reader.cost(backward[:, 1:].flatten(0, 1), before, 0.0)
        parts = {"forward": float(ahead.detach()), "backward": float(back.detach())}
        return Outcome(ahead + back, len(following) + len(before), parts)
