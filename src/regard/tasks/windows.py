"""Reading on where a model's positions end: the older half is forgotten, the newer half read again."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.sequences import Tokens
from regard.core.state import State


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
