"""Guess hidden tokens, and tell the guesses from what was there: L_MLM + λ L_Disc (Clark et al. 2020 §2).

No gradient goes from the second to the first: a guess is drawn, not computed.
"""

from typing import Protocol, cast, runtime_checkable

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Memory, Places, Tokens
from regard.core.state import State
from regard.objectives.hidden_tokens import PassageLike
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress


@runtime_checkable
class Deceiver(Protocol):
    def read(self, tokens: Tokens) -> Memory: ...
    def cost(
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"], smoothing: float
    ) -> Float[Tensor, ""]: ...


@runtime_checkable
class Doubter(Protocol):
    @property
    def generator(self) -> Deceiver: ...
    def read(self, tokens: Tokens) -> Memory: ...
    def deceive(
        self,
        states: Float[Tensor, "asked width"],
        tokens: Tokens,
        places: Places,
        wanted: Int[Tensor, "asked"],
    ) -> tuple[Tokens, Bool[Tensor, "batch time"]]: ...
    def doubt(self, memory: Memory) -> Float[Tensor, "batch time"]: ...


class ReplacedTokensSpec(ObjectiveSpec):
    weight: float = Field(default=50.0, gt=0)
    """λ: how much telling tokens apart weighs beside guessing them."""

    def build(self) -> Objective:
        return ReplacedTokens(self)


class ReplacedTokens(Objective):
    def __init__(self, spec: ReplacedTokensSpec) -> None:
        self.weight = spec.weight

    def __call__(
        self, model: nn.Module, batch: PassageLike, progress: Progress, carried: State = None
    ) -> Outcome:
        doubter = cast(Doubter, model)
        real, wanted = batch.places.real, batch.wanted[batch.places.real]
        states = batch.places.pick(doubter.generator.read(batch.tokens).states)[real]
        guessing, count = doubter.generator.cost(states, wanted, 0.0), len(wanted)
        shown, replaced = doubter.deceive(states, batch.tokens, batch.places, wanted)
        scores = doubter.doubt(doubter.read(shown))[shown.real]
        telling = F.binary_cross_entropy_with_logits(scores, replaced[shown.real].to(scores.dtype))
        # A mean over all tokens beside a mean over those hidden, as in their code.
        telling = self.weight * telling * count
        parts = {"words": float(guessing.detach()), "replaced": float(telling.detach())}
        return Outcome(guessing + telling, count, parts)
