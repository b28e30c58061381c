"""Which rows are kept away from training when no validation data is given.

A row is chosen by a seeded hash of its source, so that equal sources stay on one side, and the choice depends
neither on the order of rows nor on the rows around them, except through how many there are.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool


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
