"""How one text, or two, become one row of tokens: [begin] a [end] b [end] (Devlin et al. 2019, figure 2)."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from pydantic import Field

from regard.core.spec import Spec
from regard.data.tokenizers import Tokenizer


class Reading(NamedTuple):
    """One row as a model reads it."""

    ids: list[int]
    second: int
    """Where the second text begins; the row's length where there is none."""
    places: list[int]
    """Tokens that are asked about; empty: the row as a whole is."""
    cut: int = 0
    """Tokens that had no room."""
    words: tuple[str, ...] = ()
    """What each token is spelled as, where a model looks at letters; marks are spelled as nothing."""


class LayoutSpec(Spec):
    begin: bool = True
    """Put the begin mark in front: the place where a row is summed up."""
    between: int = Field(default=1, ge=1, le=2)
    """End marks between two texts (RoBERTa has two)."""

    def room(self, texts: int, longest: int) -> int:
        """Tokens of text that fit into a row of ``longest``."""
        return longest - self.begin - 1 - (self.between if texts > 1 else 0)

    def lay(self, tokenizer: Tokenizer, texts: Sequence[list[int]], longest: int) -> Reading:
        """Too long a row is cut at the end of its longest text."""
        before = sum(map(len, texts))
        texts = shortened(texts, self.room(len(texts), longest))
        ids = [tokenizer.begin] * self.begin + texts[0]
        second = len(ids) + self.between
        if len(texts) > 1:
            ids += [tokenizer.end] * self.between + texts[1]
        ids.append(tokenizer.end)
        return Reading(ids, min(second, len(ids)), [], before - sum(map(len, texts)))

    def lay_words(self, texts: Sequence[list[str]], longest: int) -> tuple[str, ...]:
        """What each token of such a row is spelled as; marks as nothing."""
        first, *others = shortened(texts, self.room(len(texts), longest))
        words = [*[""] * self.begin, *first]
        for other in others:
            words += [*[""] * self.between, *other]
        return (*words, "")


Item = TypeVar("Item")


def shortened(texts: Sequence[list[Item]], room: int) -> list[list[Item]]:
    """From the end of whichever is longest, until all fit."""
    if sum(map(len, texts)) <= room:
        return list(texts)
    if len(texts) == 1:
        return [texts[0][: max(room, 0)]]
    first, second = (len(text) for text in texts)
    half = max(room, 0) // 2
    kept = max(room - second, half) if second <= half else min(first, max(room, 0) - half)
    return [texts[0][:kept], texts[1][: max(room, 0) - kept]]
