"""Which rows are kept away from training when no validation data is given.

Rows that can all be looked at are chosen by a seeded hash of their source, so that equal sources stay on one
side, and the choice depends neither on the order of rows nor on the rows around them, except through how many
there are. Where looking at all of them would take too long, rows are drawn, and the hashes of their sources
tell which other rows training has to do without.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Bool

Row = TypeVar("Row")


def content_hash(text: str, seed: int) -> int:
    key = (seed & ((1 << 64) - 1)).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=key).digest(), "little")


def held_out(sources: Iterable[str], share: float, most: int, seed: int) -> Bool[np.ndarray, "rows"]:
    """True for about ``share`` of the rows, at most ``most``, at least one if two sources differ."""
    hashes = np.fromiter((content_hash(source, seed) for source in sources), dtype=np.uint64)
    wanted = min(round(share * len(hashes)), most)
    groups, sizes = np.unique(hashes, return_counts=True)
    if share <= 0 or most <= 0 or len(groups) < 2:
        return np.zeros(len(hashes), dtype=bool)
    together = np.cumsum(sizes)
    # Whole groups, smallest hash first; one at least, and never the last, which training needs.
    taken = int(np.searchsorted(together, max(1, wanted), side="right"))
    taken = min(max(1, taken), len(groups) - 1)
    return np.asarray(hashes < groups[taken])


def parted(rows: Sequence[Row], held: Bool[np.ndarray, "rows"]) -> tuple[list[Row], list[Row]]:
    """The rows to train on, and those held out."""
    both = list(zip(rows, held.tolist(), strict=True))
    return [row for row, kept in both if not kept], [row for row, kept in both if kept]


def affordable(drawn: Sequence[str], sample: Iterable[str], share: float, seed: int) -> list[int]:
    """Which of the ``drawn`` sources can be kept from training without costing it more than ``share``.

    Holding out a source costs all rows that have it; a ``sample`` of all sources tells how many those are.
    One is held out in any case if two sources differ: the rarest.
    """
    hashes = np.fromiter((content_hash(source, seed) for source in sample), dtype=np.uint64)
    groups, sizes = np.unique(hashes, return_counts=True)
    if len(groups) < 2 or not drawn:
        return []
    known = dict(zip(groups.tolist(), sizes.tolist(), strict=True))
    keys = [content_hash(source, seed) for source in drawn]
    costs = [known.get(key, 0) for key in keys]
    taken: set[int] = set()
    left = share * len(hashes)
    for key, cost in zip(keys, costs, strict=True):
        if key not in taken and cost <= left:
            taken.add(key)
            left -= cost
    if not taken:
        taken.add(keys[int(np.argmin(costs))])
    return [place for place, key in enumerate(keys) if key in taken]
