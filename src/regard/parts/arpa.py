"""The ARPA format, which SRILM and KenLM read: log₁₀ p(w | h) of n-grams, and what backing off costs.

A reader takes p(w | h) as written where ``h w`` is, and otherwise weight(h) · p(w | h′). So each n-gram is
written with all that it has, its own part and its share of the shorter context's probability.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

IMPOSSIBLE = -99.0
"""Stands for log₁₀ 0, as is the custom."""


class Table(NamedTuple):
    """What follows contexts of one length: n-grams by key, and what contexts leave to the shorter one."""

    keys: np.ndarray
    parts: np.ndarray
    weights: np.ndarray


def arpa_lines(
    names: Sequence[str], probabilities: np.ndarray, tables: Sequence[Table], absent: int
) -> Iterator[str]:
    """``names`` and ``probabilities`` of single words; ``absent`` is the padding, which is left out."""
    orders = [np.arange(len(names)), *(table.keys for table in tables)]
    yield "\\data\\"
    for order, keys in enumerate(orders, start=1):
        yield f"ngram {order}={len(keys) - (order == 1)}"
    texts, whole = list(names), probabilities
    endings = np.zeros(len(names), dtype=np.int64)
    for order, keys in enumerate(orders, start=1):
        if order > 1:
            table, (contexts, words) = tables[order - 2], np.divmod(keys, len(names))
            endings = _endings(endings[contexts], words, orders[order - 2], order, len(names))
            whole = table.parts + table.weights[contexts] * whole[endings]
            texts = [f"{texts[c]} {names[w]}" for c, w in zip(contexts.tolist(), words.tolist(), strict=True)]
        left = tables[order - 1].weights if order <= len(tables) else None
        yield f"\n\\{order}-grams:"
        yield from _entries(texts, whole, left, absent if order == 1 else None)
    yield "\n\\end\\"


def _endings(before: np.ndarray, words: np.ndarray, below: np.ndarray, order: int, size: int) -> np.ndarray:
    """Each n-gram without its first word, by its place below: its context's ending, and its word."""
    return words if order == 2 else np.searchsorted(below, before * size + words)


def _entries(
    texts: Sequence[str], whole: np.ndarray, left: np.ndarray | None, absent: int | None
) -> Iterator[str]:
    scores = _log10(whole)
    weights = [""] * len(texts) if left is None else [f"\t{weight:.7g}" for weight in _log10(left).tolist()]
    for place, (text, score, weight) in enumerate(zip(texts, scores.tolist(), weights, strict=True)):
        if place != absent:
            yield f"{score:.7g}\t{text}{weight}"


def _log10(values: np.ndarray) -> np.ndarray:
    logarithms = np.full(len(values), IMPOSSIBLE)
    np.log10(values, out=logarithms, where=values > 0)
    return logarithms
