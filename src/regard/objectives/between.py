"""Tell the word between others from words drawn from everywhere (Melamud et al. 2016 eq. 3)."""

from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.randomness import current_generator
from regard.core.sequences import Memory, Tokens
from regard.core.state import State
from regard.objectives.negative_sampling import told_apart
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress
from regard.objectives.running_text import TextLike


@runtime_checkable
class Reader(Protocol):
    @property
    def noise(self) -> Float[Tensor, "vocabulary"]: ...
    def read(self, tokens: Tokens) -> Memory: ...
    def seen(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]: ...


class BetweenWordsSpec(ObjectiveSpec):
    negatives: int = Field(default=10, ge=1)
    """Words drawn from everywhere that count against each word that is there."""
    drawn: int = Field(default=64, ge=1)
    """Words that are drawn for a batch, which all of it shares."""

    def build(self) -> Objective:
        return BetweenWords(self)


class BetweenWords(Objective):
    def __init__(self, spec: BetweenWordsSpec) -> None:
        self.spec = spec

    def __call__(
        self, model: nn.Module, batch: TextLike, progress: Progress, carried: State = None
    ) -> Outcome:
        reader = cast(Reader, model)
        ids = torch.cat((batch.given.ids, batch.wanted[:, -1:]), dim=1)
        # The first and the last of a row have words on one side only; what is not known is not asked for.
        x, words = reader.read(Tokens.whole(ids)).states[:, 1:-1], ids[:, 1:-1]
        asked = reader.noise[words] > 0
        x, words = x[asked][None], words[asked][None]
        noise = torch.multinomial(
            reader.noise, self.spec.drawn, replacement=True, generator=current_generator()
        )[None]
        loss = told_apart(
            x,
            reader.seen(torch.cat((words[0], noise[0]))),
            torch.ones_like(words, dtype=torch.bool),
            words[:, :, None] != noise[:, None, :],
            self.spec.negatives,
        )
        return Outcome(loss, words.numel(), {})
