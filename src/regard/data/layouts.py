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
    segments: tuple[int, ...] = ()
    """The segment of every token, where it does not follow from which text it belongs to."""


class FrameSpec(Spec):
    """Tokens of a task's own around and between texts, learned with it (Radford et al. 2018 §3.3)."""

    start: str = "<start>"
    delimiter: str = "<delimiter>"
    extract: str = "<extract>"
    """The last of a row, where it is summed up."""


class LayoutSpec(Spec):
    begin: bool = True
    """Put the begin mark in front: the place where a row is summed up."""
    between: int = Field(default=1, ge=1, le=2)
    """End marks between two texts (RoBERTa has two)."""
    frame: FrameSpec | None = None
    """New tokens in place of these marks; null: begin and end."""

    @property
    def new_tokens(self) -> tuple[str, ...]:
        """What a vocabulary must have beside what it has learned."""
        return () if self.frame is None else tuple(str(name) for name in self.frame.to_dict().values())

    @property
    def before(self) -> int:
        """Tokens in front of the first text."""
        return 1 if self.frame is not None else int(self.begin)

    def room(self, texts: int, longest: int) -> int:
        """Tokens of text that fit into a row of ``longest``."""
        return longest - self.before - 1 - (self._between if texts > 1 else 0)

    @property
    def _between(self) -> int:
        return self.between if self.frame is None else 1

    def _marks(self, tokenizer: Tokenizer) -> tuple[int, int, int]:
        if self.frame is None:
            return tokenizer.begin, tokenizer.end, tokenizer.end
        start, delimiter, extract = (tokenizer.number_of(name) for name in self.new_tokens)
        return start, delimiter, extract

    def lay(self, tokenizer: Tokenizer, texts: Sequence[list[int]], longest: int) -> Reading:
        """Too long a row is cut at the end of its longest text."""
        before = sum(map(len, texts))
        texts = shortened(texts, self.room(len(texts), longest))
        start, delimiter, extract = self._marks(tokenizer)
        ids = [start] * self.before + texts[0]
        second = len(ids) + self._between
        if len(texts) > 1:
            ids += [delimiter] * self._between + texts[1]
        ids.append(extract)
        return Reading(ids, min(second, len(ids)), [], before - sum(map(len, texts)))

    def alone(self, tokenizer: Tokenizer, texts: Sequence[str], longest: int) -> list[Reading]:
        """Each as a row of its own, whatever rows are else made of."""
        return [self.lay(tokenizer, [ids], longest) for ids in tokenizer.encode_many(list(texts))]

    def lay_words(self, texts: Sequence[list[str]], longest: int) -> tuple[str, ...]:
        """What each token of such a row is spelled as; marks as nothing."""
        first, *others = shortened(texts, self.room(len(texts), longest))
        words = [*[""] * self.before, *first]
        for other in others:
            words += [*[""] * self._between, *other]
        return (*words, "")


def marked(tokenizer: Tokenizer, texts: Sequence[str], most: int | None) -> list[Reading]:
    """Each between its two marks, cut to ``most`` tokens."""
    layout, rows = LayoutSpec(), tokenizer.encode_many(list(texts))
    return [layout.lay(tokenizer, [ids], most or len(ids) + 2) for ids in rows]


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
