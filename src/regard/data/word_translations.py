"""Which tokens of two languages stand for each other, learned from pairs alone.

Every token of a target is taken to come from one token of its source, or from none, wherever it stands. How
likely each source token then gives each target token is found by expectation and maximisation, in a few
rounds over all couples that occur together.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64

from regard.data.store import TokenStore

_ROUNDS = 5
_MOST_COUPLES = 1 << 25
"""Of a larger corpus pairs are taken at equal distances until there are about so many: what they fill is a
few hundred megabytes."""
_BLOCK_COUPLES = 1 << 22


class Translations(NamedTuple):
    """Couples by source and then by target."""

    source: Int64[np.ndarray, "couples"]
    target: Int64[np.ndarray, "couples"]
    share: Float64[np.ndarray, "couples"]
    """Of the source token, given to this target token."""


class _Block(NamedTuple):
    """Couples of some pairs: for each token of their targets all tokens of the source beside it, and none."""

    couples: Int32[np.ndarray, "links"]
    """Which of all couples each is."""
    beside: Int64[np.ndarray, "targets"]
    """How many each token of a target has."""

    def shared_out(self, share: Float64[np.ndarray, "couples"]) -> Float64[np.ndarray, "couples"]:
        """Every token of a target divided among those it may come from."""
        likely = share[self.couples]
        likely /= np.repeat(np.add.reduceat(likely, np.cumsum(self.beside) - self.beside), self.beside)
        return np.bincount(self.couples, likely, len(share))


def learn_translations(
    source: TokenStore, target: TokenStore, source_size: int, target_size: int
) -> Translations:
    """``source_size`` and ``target_size`` are of the vocabularies."""
    rows, nothing = _sample(source, target), source_size
    pairs = [_links(source, target, some, nothing, target_size) for some in _blocks(source, target, rows)]
    known = _distinct(np.concatenate([_distinct(keys) for keys, _ in pairs] or [np.zeros(0, np.int64)]))
    blocks = [_Block(_places(known, keys), beside) for keys, beside in pairs]
    del pairs
    sources, targets = np.divmod(known, target_size)
    share = np.ones(len(known))
    for _ in range(_ROUNDS):
        counts = np.zeros(len(known))
        for block in blocks:
            counts += block.shared_out(share)
        share = counts / np.bincount(sources, counts, source_size + 1)[sources]
    real = sources != nothing
    return Translations(sources[real], targets[real], share[real])


def _sample(source: TokenStore, target: TokenStore) -> Int64[np.ndarray, "rows"]:
    """Pairs of which neither side is empty, as many as can be afforded."""
    rows = np.flatnonzero((source.lengths > 0) & (target.lengths > 0))
    couples = int(_couples(source, target, rows).sum())
    if couples <= _MOST_COUPLES:
        return rows
    count = max(1, len(rows) * _MOST_COUPLES // couples)
    return rows[np.arange(count) * len(rows) // count]


def _blocks(source: TokenStore, target: TokenStore, rows: np.ndarray) -> Iterator[np.ndarray]:
    numbers = np.cumsum(_couples(source, target, rows)) // _BLOCK_COUPLES
    bounds = np.flatnonzero(np.diff(numbers)) + 1
    return (some for some in np.split(rows, bounds) if len(some))


def _couples(source: TokenStore, target: TokenStore, rows: np.ndarray) -> Int64[np.ndarray, "rows"]:
    read, written = (np.asarray(side.lengths[rows], dtype=np.int64) for side in (source, target))
    return (read + 1) * written


def _links(
    source: TokenStore, target: TokenStore, rows: np.ndarray, nothing: int, target_size: int
) -> tuple[Int64[np.ndarray, "links"], Int64[np.ndarray, "targets"]]:
    """Each couple as one number, and how many every token of a target has."""
    read, written = source.lengths[rows].astype(np.int64) + 1, target.lengths[rows].astype(np.int64)
    sources = np.full(int(read.sum()), nothing, dtype=np.int64)
    ends = np.cumsum(read)
    sources[np.delete(np.arange(len(sources)), ends - 1)] = _values(source, rows)
    beside = np.repeat(read, written)
    begins = np.repeat(ends - read, written)
    places = np.arange(int(beside.sum())) + np.repeat(begins - (np.cumsum(beside) - beside), beside)
    return sources[places] * target_size + np.repeat(_values(target, rows), beside), beside


def _distinct(keys: Int64[np.ndarray, "links"]) -> Int64[np.ndarray, "couples"]:
    """In order. (``np.unique`` hashes: forty times as long.)"""
    ordered: np.ndarray = np.sort(keys)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]


def _places(
    known: Int64[np.ndarray, "couples"], keys: Int64[np.ndarray, "links"]
) -> Int32[np.ndarray, "links"]:
    """Where each is among those known; looked for in order, for what is looked for next is then near."""
    order = np.argsort(keys)
    places = np.empty(len(keys), dtype=np.int32)
    places[order] = np.searchsorted(known, keys[order])
    return places


def _values(store: TokenStore, rows: np.ndarray) -> Int64[np.ndarray, "tokens"]:
    lengths = store.lengths[rows].astype(np.int64)
    before = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(np.asarray(store.offsets)[rows] - before, lengths)
    return np.asarray(store.values[places], dtype=np.int64)
