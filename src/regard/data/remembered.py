"""What stands between blanks is cut into tokens once.

A text is mostly made of words that were there before. Where a unit cuts each of them the same way whatever
stands beside it, a text costs a look-up a word: an eighth of what the library takes for it.
"""

from collections.abc import Callable, Sequence
from itertools import chain

WORDS, LONGEST = 1 << 16, 48
"""How many are remembered, and how many characters they have at most: who writes without blanks hardly
writes the same thing twice."""


class Remembered:
    """``encode_many`` for texts, by asking ``cut`` for each word that is new."""

    def __init__(self, cut: Callable[[list[str]], list[list[int]]], most: int = WORDS) -> None:
        self._cut, self._most = cut, most
        self._known: dict[str, tuple[int, ...]] = {}
        """Tuples: the collector of garbage walks through lists again and again."""

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        rows, known = [text.split(" ") for text in texts], self._known
        try:
            return [list(chain.from_iterable(map(known.__getitem__, words))) for words in rows]
        except KeyError:
            known = self._with(set(chain.from_iterable(rows)))
        return [list(chain.from_iterable(map(known.__getitem__, words))) for words in rows]

    def _with(self, words: set[str]) -> dict[str, tuple[int, ...]]:
        """All of ``words``. Others may be looking something up meanwhile: nothing is ever taken away from
        what they look into, a new one is begun instead."""
        known = self._known
        new = [word for word in words if word not in known]
        if len(known) + len(new) > self._most:
            known, new = {}, list(words)
            self._known = known
        found = dict(zip(new, map(tuple, self._cut(new)), strict=True))
        known.update((word, ids) for word, ids in found.items() if len(word) <= LONGEST)
        if all(len(word) <= LONGEST for word in new):
            return known
        return {word: found[word] if word in found else known[word] for word in words}
