"""Small corpora of numbered words, and n-gram probabilities by dictionaries, straight from the formulas."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache

import numpy as np
from hypothesis import strategies as st

PADDING, UNKNOWN, BEGIN, END = range(4)
Gram = tuple[int, ...]


def corpora(vocabulary: int, most: int = 6, longest: int = 7) -> st.SearchStrategy[list[list[int]]]:
    """A few documents, each with its end; some are nothing but an end."""
    words = st.integers(END + 1, vocabulary - 1) | st.just(UNKNOWN)
    return st.lists(st.lists(words, max_size=longest).map(lambda one: [*one, END]), min_size=1, max_size=most)


def some_text(seed: int, vocabulary: int, documents: int) -> list[list[int]]:
    """Enough of it for every discount to be estimated: each word prefers a few others."""
    dice = random.Random(seed)
    likely = {w: dice.choices(range(END, vocabulary), k=4) for w in range(vocabulary)}
    found = []
    for _ in range(documents):
        text = [BEGIN]
        while text[-1] != END and len(text) < 12:
            anywhere = dice.random() < 0.35
            text.append(dice.choice(range(END, vocabulary) if anywhere else likely[text[-1]]))
        found.append([*text[1:-1], END])
    return found


def flat(documents: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """One array of ids, and where documents begin in it."""
    lengths = [len(document) for document in documents]
    return np.asarray([w for one in documents for w in one]), np.cumsum([0, *lengths])


def counted(documents: Sequence[Sequence[int]], order: int) -> dict[int, Counter[Gram]]:
    """Every n-gram of every order, the begin token before each document; it alone is no n-gram."""
    found: dict[int, Counter[Gram]] = {n: Counter() for n in range(1, order + 1)}
    for document in documents:
        text = (BEGIN, *document)
        for n in range(1, order + 1):
            found[n].update(text[i : i + n] for i in range(len(text) - n + 1))
    del found[1][(BEGIN,)]
    return found


class KneserNey:
    """Interpolated modified Kneser-Ney, Chen and Goodman 1998 §3, one dictionary at a time."""

    def __init__(self, documents: Sequence[Sequence[int]], order: int, vocabulary: int) -> None:
        self.order, self.words = order, vocabulary - 2
        raw = counted(documents, order)
        self.counts = {n: self._adjusted(raw, n) for n in raw}
        self.discount = {n: self._discounts(self.counts[n]) for n in raw}
        self.after: dict[Gram, dict[int, int]] = defaultdict(dict)
        for n in raw:
            for gram, count in self.counts[n].items():
                self.after[gram[:-1]][gram[-1]] = count

    def _adjusted(self, raw: dict[int, Counter[Gram]], n: int) -> dict[Gram, int]:
        if n == self.order:
            return dict(raw[n])
        before: dict[Gram, set[int]] = defaultdict(set)
        for first, *rest in raw[n + 1]:
            before[tuple(rest)].add(first)
        return {gram: c if gram[0] == BEGIN else len(before[gram]) for gram, c in raw[n].items()}

    def _discounts(self, counts: dict[Gram, int]) -> tuple[float, float, float]:
        t = Counter(counts.values())
        try:
            y = t[1] / (t[1] + 2 * t[2])
            one, two, more = 1 - 2 * y * t[2] / t[1], 2 - 3 * y * t[3] / t[2], 3 - 4 * y * t[4] / t[3]
        except ZeroDivisionError:
            return 0.5, 1.0, 1.5
        usable = 0 < one <= 1 and 0 < two <= 2 and 0 < more <= 3
        return (one, two, more) if usable else (0.5, 1.0, 1.5)

    @cache  # noqa: B019
    def probability(self, word: int, context: Gram) -> float:
        """``context`` is at most order − 1 long."""
        if word in (PADDING, BEGIN):
            return 0.0
        shorter = self.probability(word, context[1:]) if context else 1 / self.words
        after = self.after.get(context)
        if not after:
            return shorter
        discount = self.discount[len(context) + 1]
        total = sum(after.values())
        left = sum(discount[min(count, 3) - 1] for count in after.values()) / total
        count = after.get(word, 0)
        return (count - discount[min(count, 3) - 1] if count else 0) / total + left * shorter
