"""Reading on where a model's positions end: the older half is forgotten, the newer half read again."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.sequences import Tokens
from regard.core.state import State
from regard.search.hypotheses import Hypothesis, normalise


@runtime_checkable
class TextModel(Protocol):
    """What a language model must be able to do to go on with a text."""

    @property
    def longest(self) -> int | None: ...
    def start(self, batch: int) -> State: ...
    def read(self, tokens: Tokens, state: State) -> tuple[Any, State]: ...
    def predict(self, x: Any) -> Float[Tensor, "*rows vocabulary"]: ...
    def log_probs_of(self, x: Any, wanted: Int[Tensor, "rows"]) -> Float[Tensor, "rows"]: ...
    def step(
        self, tokens: Int[Tensor, "rows"], state: State
    ) -> tuple[Float[Tensor, "rows vocabulary"], State]: ...


class Held(NamedTuple):
    """What a row still knows, and the tokens it was made of."""

    tokens: Int[Tensor, "rows longest"]
    """Right-aligned; only the last ``length`` are meant."""
    length: Int[Tensor, "rows"]
    inner: State


class Sliding:
    """A step function without an end over a model with one.

    A row that is full goes on with its newer half; all others read what they hold again, which by the chunk
    law changes nothing. So what becomes of a row does not depend on its neighbours.
    """

    def __init__(self, model: TextModel, longest: int, padding: int) -> None:
        self.model, self.longest, self.padding = model, longest, padding

    def start(self, batch: int, device: torch.device) -> Held:
        none = torch.zeros(batch, self.longest, dtype=torch.long, device=device)
        return Held(none, none.sum(1), self.model.start(batch))

    def read(self, tokens: Tokens, state: Held) -> Held:
        """Take in prompts, each no longer than the model's positions."""
        counts = tokens.real.sum(1)
        held = state.tokens.clone()
        for row, count in enumerate(counts.tolist()):
            if count:
                held[row, -count:] = tokens.ids[row, :count]
        _, inner = self.model.read(tokens, state.inner)
        return Held(held, counts, inner)

    def step(self, tokens: Int[Tensor, "rows"], state: Held) -> tuple[Float[Tensor, "rows vocabulary"], Held]:
        full = state.length >= self.longest
        if bool(full.any()):
            state = self._read_again(
                state._replace(length=torch.where(full, self.longest // 2, state.length))
            )
        log_probs, inner = self.model.step(tokens, state.inner)
        held = torch.cat((state.tokens[:, 1:], tokens[:, None]), dim=1)
        return log_probs, Held(held, state.length + 1, inner)

    def _read_again(self, state: Held) -> Held:
        rows = [tokens[-count:] if count else [] for tokens, count in
                zip(state.tokens.tolist(), state.length.tolist(), strict=True)]  # fmt: skip
        tokens = Tokens.pad(rows, self.padding).to(state.tokens.device)
        _, inner = self.model.read(tokens, self.model.start(len(rows)))
        return state._replace(inner=inner)


def found_in_windows(
    find: Callable[[list[list[int]], list[int]], list[list[Hypothesis] | None]],
    prompts: Sequence[Sequence[int]],
    longest: int,
    positions: int,
    alpha: float,
) -> list[list[Hypothesis] | None]:
    """What ``find`` writes after prompts, each of up to ``longest`` tokens, where it has room for so many
    ``positions``: what is full goes on from its newer half, as ``Sliding`` does.

    Only for searches whose tokens stay: what was written in one window is read in the next.
    """
    windows = [list(prompt) for prompt in prompts]
    found: list[Hypothesis | None] = [Hypothesis([], False, 0.0, 0.0, [])] * len(prompts)
    going = list(range(len(prompts)))
    while going:
        # What is written last is not read any more, so a window has room for one token beyond its positions.
        room = [min(longest - _count(found[row]), positions - len(windows[row]) + 1) for row in going]
        for row, some in zip(going, find([windows[row] for row in going], room), strict=True):
            found[row] = _joined(found[row], some[0], alpha) if some else None
            windows[row] = [*windows[row], *(some[0].tokens if some else ())][-(positions // 2 + 1) :]
        going = [row for row in going if _goes_on(found[row], longest)]
    return [None if one is None else [one] for one in found]


def _count(found: Hypothesis | None) -> int:
    return 0 if found is None else len(found.tokens)


def _goes_on(found: Hypothesis | None, longest: int) -> bool:
    return found is not None and not found.finished and len(found.tokens) < longest


def _joined(one: Hypothesis | None, more: Hypothesis, alpha: float) -> Hypothesis:
    assert one is not None, "nothing is added to what was given back"
    tokens, log_prob = [*one.tokens, *more.tokens], one.log_prob + more.log_prob
    score = normalise(log_prob, len(tokens) + more.finished, alpha)
    own = [*one.token_log_probs, *more.token_log_probs]
    return Hypothesis(tokens, more.finished, log_prob, score, own)
