"""How often each n-gram occurs: a trie, kept as one sorted array of numbers per order.

An n-gram is named by its place in the table of its order. Its key is ``context × vocabulary + word``, where
``context`` names the n-gram without its last word in the table of the order below. Sorting the keys of an
order numbers its n-grams, puts what follows one context side by side, and makes looking up a binary search.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regard.core.errors import DataError, UsageError


class Grams(NamedTuple):
    """All n-grams of one order, sorted by key. Of order 1 there is one per word, seen or not."""

    keys: np.ndarray
    counts: np.ndarray
    contexts: np.ndarray
    """The n-gram without its last word, by its place in the order below (0 where that is nothing)."""
    contexts_below: int
    """How many there are in the order below: more than are ever continued."""
    endings: np.ndarray
    """The n-gram without its first word, likewise."""
    initial: np.ndarray
    """Whether it begins with the begin token: then nothing can stand before it."""


class NgramCounts(NamedTuple):
    orders: Sequence[Grams]
    """From single words upwards. Every prefix and every suffix of an n-gram is in the order below."""
    vocabulary: int
    producible: np.ndarray
    """Which words can follow anything at all: not padding, and not the begin token."""


def count_ngrams(
    values: np.ndarray, offsets: np.ndarray, order: int, vocabulary: int, begin: int, padding: int
) -> NgramCounts:
    """Count n-grams up to ``order``; document i is ``values[offsets[i]:offsets[i + 1]]``.

    One begin token is put before every document, so the first words have shorter contexts, not padded ones
    (as in SRILM and KenLM). The begin token is a context but never counted as a word, and no n-gram reaches
    from one document into another.
    """
    words, left = _with_begin(_checked(values, vocabulary, begin, padding), offsets, begin)
    orders = [_single_words(words, vocabulary, begin)]
    # node[i] names the n-gram that starts at place i; only places where it fits into its document are kept.
    place, node, ending_at = np.arange(len(words)), words, np.zeros(len(words), dtype=np.int64)
    for length in range(2, order + 1):
        if len(orders[-1].keys) > np.iinfo(np.int64).max // vocabulary:
            raise UsageError(f"{len(orders[-1].keys)} n-grams × {vocabulary} words: too many to number")
        ending_at[place] = node
        fits = left[place] >= length
        place, node = place[fits], node[fits]
        keys, first, node, counts = np.unique(
            node * vocabulary + words[place + length - 1],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        below, contexts, endings = orders[-1], keys // vocabulary, ending_at[place[first] + 1]
        orders.append(Grams(keys, counts, contexts, len(below.keys), endings, below.initial[contexts]))
    producible = np.ones(vocabulary, dtype=bool)
    producible[[begin, padding]] = False
    return NgramCounts(orders, vocabulary, producible)


def _checked(values: np.ndarray, vocabulary: int, begin: int, padding: int) -> np.ndarray:
    values = values.astype(np.int64)
    if not len(values):
        raise DataError("there is not one token to count")
    if values.min() < 0 or values.max() >= vocabulary:
        raise DataError(f"token ids from {values.min()} to {values.max()} in a vocabulary of {vocabulary}")
    for name, token in (("begin token", begin), ("padding", padding)):
        if (values == token).any():
            raise DataError(f"the {name} (id {token}) stands inside a document")
    return values


def _with_begin(values: np.ndarray, offsets: np.ndarray, begin: int) -> tuple[np.ndarray, np.ndarray]:
    """Each document after a begin token; and how many tokens of it are left from each place on."""
    offsets = np.asarray(offsets, dtype=np.int64)
    words = np.insert(values, offsets[:-1], begin)
    ends = offsets[1:] + np.arange(1, len(offsets))
    left = np.repeat(ends, np.diff(offsets) + 1) - np.arange(len(words))
    return words, left


def _single_words(words: np.ndarray, vocabulary: int, begin: int) -> Grams:
    counts = np.bincount(words, minlength=vocabulary)
    counts[begin] = 0
    keys, nothing = np.arange(vocabulary), np.zeros(vocabulary, dtype=np.int64)
    return Grams(keys, counts, nothing, 1, nothing, keys == begin)
