"""Tokens hidden from a reader that is to guess them: cloze, as BERT plays it (Devlin et al. 2019 §3.1)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from pydantic import Field

from regard.core.spec import Spec


class Hidden(NamedTuple):
    """Rows as they are shown, and which of their tokens are to be guessed."""

    shown: Int[np.ndarray, "rows time"]
    asked: Bool[np.ndarray, "rows time"]


class HidingSpec(Spec):
    share: float = Field(default=0.15, gt=0, lt=1)
    """Of the tokens that are to be guessed."""
    masked: float = Field(default=0.8, ge=0, le=1)
    """Share of those that show a mark for what is hidden …"""
    random: float = Field(default=0.1, ge=0, le=1)
    """… and share that show some other token; the rest are shown as they are."""
    whole_words: bool = False
    """Hide all pieces of a word together."""

    def hide(
        self,
        ids: Int[np.ndarray, "rows time"],
        free: Bool[np.ndarray, "rows time"],
        begins: Bool[np.ndarray, "rows time"],
        mark: int,
        others: Int[np.ndarray, "tokens"],
        random: np.random.Generator,
    ) -> Hidden:
        """``free`` may be hidden; ``begins`` says where words do; ``others`` are tokens to show instead.

        Every row has something to guess.
        """
        asked = self._words(free, begins, random) if self.whole_words else self._tokens(free, random)
        fate = random.random(ids.shape)
        shown = np.where(asked & (fate < self.masked), mark, ids)
        swapped = asked & (fate >= self.masked) & (fate < self.masked + self.random)
        return Hidden(np.where(swapped, random.choice(others, ids.shape), shown), asked)

    def _tokens(self, free: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """The same number in every row of the same length: those with the smallest draws."""
        draws = np.where(free, random.random(free.shape), 2.0)
        wanted = np.maximum(1, np.round(self.share * free.sum(1))).astype(np.int64)
        order = draws.argsort(axis=1).argsort(axis=1)
        chosen: np.ndarray = (order < wanted[:, None]) & free
        return chosen

    def _words(self, free: np.ndarray, begins: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Words in random order, until enough tokens are hidden."""
        word = np.cumsum(begins | ~free, axis=1)
        asked = np.zeros_like(free)
        for row in range(len(free)):
            wanted = max(1, round(self.share * int(free[row].sum())))
            for number in random.permutation(np.unique(word[row][free[row]])):
                if asked[row].sum() >= wanted:
                    break
                asked[row] |= free[row] & (word[row] == number)
        return asked
