"""Guess hidden tokens, and whether two passages belong together: L_MLM + L_NSP (Devlin et al. 2019)."""

from typing import Protocol, cast, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.sequences import Memory, Places, Tokens
from regard.core.state import State
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress


@runtime_checkable
class Guesser(Protocol):
    def read(self, tokens: Tokens) -> Memory: ...
    def cost(
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"], smoothing: float
    ) -> Float[Tensor, ""]: ...
    def relation_cost(self, memory: Memory, follows: Int[Tensor, "batch 1"]) -> Float[Tensor, ""]: ...


@runtime_checkable
class PassageLike(Protocol):
    @property
    def tokens(self) -> Tokens: ...
    @property
    def places(self) -> Places: ...
    @property
    def wanted(self) -> Int[Tensor, "batch asked"]: ...
    @property
    def follows(self) -> Int[Tensor, "batch 1"] | None: ...


class HiddenTokensSpec(ObjectiveSpec):
    def build(self) -> Objective:
        return HiddenTokens()


class HiddenTokens(Objective):
    def __call__(
        self, model: nn.Module, batch: PassageLike, progress: Progress, carried: State = None
    ) -> Outcome:
        guesser = cast(Guesser, model)
        memory = guesser.read(batch.tokens)
        # Only what was hidden reaches the output layer, the widest of all.
        states, wanted = batch.places.pick(memory.states)[batch.places.real], batch.wanted[batch.places.real]
        loss, count = guesser.cost(states, wanted, 0.0), len(wanted)
        if batch.follows is None:
            return Outcome(loss, count, {})
        # A mean over rows beside a mean over tokens: both weigh the same in the sum.
        relation = guesser.relation_cost(memory, batch.follows) * (count / len(batch.follows))
        parts = {"words": float(loss.detach()), "relation": float(relation.detach())}
        return Outcome(loss + relation, count, parts)
