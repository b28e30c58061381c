"""Required words: token sequences that must occur somewhere in an answer."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.state import State
from regard.search.constraints import (
    IMPOSSIBLE,
    NONE,
    Constraint,
    ending,
    one_for_each,
    refuse_empty,
)


class RequiredWords(Constraint):
    """For each sentence its required phrases; for each phrase its alternatives, each a list of tokens.

    A phrase is met once any of its alternatives occurred; phrases may overlap, and one occurrence is enough
    for phrases that are equal. No hypothesis may end before all its phrases are met. A beam keeps room for
    hypotheses on the way there (``goals``); when the greatest length comes first, the answer is not finished.
    """

    def __init__(self, required: Sequence[Sequence[Sequence[Sequence[int]]]], end: int) -> None:
        self.required = [[[list(one) for one in phrase] for phrase in phrases] for phrases in required]
        self.end = end
        phrases = [phrase for sentence in self.required for phrase in sentence]
        refuse_empty(phrases)
        refuse_empty(one for phrase in phrases for one in phrase)
        if any(end in one for phrase in phrases for one in phrase):
            raise UsageError(f"a required word contains the end token {end}")

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        """Whether each phrase is met, and the table of all beginnings of all alternatives.

        ``heads[row, phrase, alternative, j]`` are the first j + 1 tokens, aligned to the right.
        """
        one_for_each(self.required, first, "lists of required words")
        most = max(1, *(len(phrases) for phrases in self.required))
        alternatives = max((len(p) for phrases in self.required for p in phrases), default=1)
        longest = max((len(one) for phrases in self.required for p in phrases for one in p), default=1)
        heads = torch.full((len(first), most, alternatives, longest, longest), NONE)
        met = torch.ones(len(first), most, dtype=torch.bool)
        for row, phrases in enumerate(self.required):
            for place, phrase in enumerate(phrases):
                met[row, place] = False
                for other, one in enumerate(phrase):
                    for j in range(len(one)):
                        heads[row, place, other, j, longest - 1 - j :] = torch.tensor(one[: j + 1])
        return met.to(first.device), heads.to(first.device)

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        met, _ = state
        log_probs = log_probs.clone()
        log_probs[~met.all(1), self.end] = IMPOSSIBLE
        return log_probs

    def follow(self, history: Int[Tensor, "rows time"], state: State) -> State:
        met, heads = state
        complete = (_matched(history, heads) == _lengths(heads)) & (_lengths(heads) > 0)
        return met | complete.any(2), heads

    def wanted(self, history: Int[Tensor, "rows time"], state: State) -> Int[Tensor, "rows options"]:
        """The next token of every alternative of every phrase that is not met."""
        met, heads = state
        at = _matched(history, heads).clamp_max(heads.shape[3] - 1)
        following: Tensor = heads[..., -1].gather(3, at[..., None]).squeeze(3)
        return following.masked_fill(met[:, :, None], NONE).flatten(1)

    def progress(self, history: Int[Tensor, "rows time"], state: State) -> Int[Tensor, "rows"]:
        """Tokens of the phrases that are met, and of the one under way that is furthest.

        Only the furthest counts, not their sum: then its next token always adds one, even when it breaks
        off another phrase that happened to be under way too.
        """
        met, heads = state
        done: Tensor = (_lengths(heads).amax(2) * met).sum(1)
        under_way = _matched(history, heads).amax(2).masked_fill(met, 0)
        return done + under_way.amax(1)


def _matched(
    history: Int[Tensor, "rows time"], heads: Int[Tensor, "rows phrases alternatives longest longest"]
) -> Int[Tensor, "rows phrases alternatives"]:
    """How many tokens of each alternative the history ends with."""
    recent = ending(history, heads.shape[4])[:, None, None, None, :]
    real = heads[..., -1] != NONE
    fits = ((heads == NONE) | (heads == recent)).all(4) & real
    count = torch.arange(1, heads.shape[3] + 1, device=heads.device)
    return (fits * count).amax(3)


def _lengths(
    heads: Int[Tensor, "rows phrases alternatives longest longest"],
) -> Int[Tensor, "rows phrases alternatives"]:
    return (heads[..., -1] != NONE).sum(3)
