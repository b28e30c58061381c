"""Constraints that look at the text being written: where it must stop, who hears of it and who has left."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.state import State
from regard.search.constraints import IMPOSSIBLE, Constraint

Decode: TypeAlias = Callable[[Sequence[int]], str]


class StopTexts(Constraint):
    """Once an answer contains one of these texts, nothing but the end may follow."""

    def __init__(self, stops: Sequence[str], decode: Decode, end: int) -> None:
        self.stops, self.decode, self.end = tuple(stops), decode, end
        # A token is at least one character, or part of one: more of the past cannot hold a new stop.
        self._looked_at = 4 * max(map(len, stops), default=0) + 4

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        return torch.zeros_like(first, dtype=torch.bool)

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        if not bool(state.any()):
            return log_probs
        others = torch.ones_like(log_probs[0], dtype=torch.bool)
        others[self.end] = False
        return log_probs.masked_fill(state[:, None] & others, IMPOSSIBLE)

    def follow(self, history: Int[Tensor, "rows time"], state: State) -> State:
        recent = history[:, -self._looked_at :].tolist()
        said = [any(stop in self.decode(tokens) for stop in self.stops) for tokens in recent]
        return state | torch.tensor(said, dtype=torch.bool, device=state.device)


class Listening(Constraint):
    """Restricts nothing; ``hear(sentence, token)`` is told of every token as soon as it is chosen."""

    def __init__(self, hear: Callable[[int, int], None]) -> None:
        self.hear = hear

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        return torch.arange(len(first), device=first.device)

    def follow(self, history: Int[Tensor, "rows time"], state: State) -> State:
        for sentence, token in zip(state.tolist(), history[:, -1].tolist(), strict=True):
            self.hear(sentence, token)
        return state


class Leaving(Constraint):
    """Nothing but the end may follow in sentences that nobody waits for any more: they leave the batch."""

    def __init__(self, left: Callable[[int], bool], end: int) -> None:
        self.left, self.end = left, end

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        return torch.arange(len(first), device=first.device)

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        left = torch.tensor([self.left(sentence) for sentence in state.tolist()], device=state.device)
        if not bool(left.any()):
            return log_probs
        others = torch.ones_like(log_probs[0], dtype=torch.bool)
        others[self.end] = False
        return log_probs.masked_fill(left[:, None] & others, IMPOSSIBLE)


def cut_at(text: str, stops: Sequence[str]) -> str:
    """``text`` up to the first of the stops."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else text
