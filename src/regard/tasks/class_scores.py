"""How well classes were told apart: as often as right, and so that a rare class counts too.

    accuracy    share of the examples that got their class
    f1          of two classes, harmonic mean of precision and recall of the *positive* one: that which comes
                last in the alphabet (1 of 0 and 1, yes of no and yes, positive of negative and positive)
    macro_f1    the mean of that over all classes, each in turn the positive one
    matthews    the correlation of found and wanted classes (Matthews 1975; Gorodkin 2004 for several)

All are from 0 to 1, ``matthews`` from −1.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int


def class_scores(found: Sequence[str], wanted: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """``f1`` only where there are two classes. ``names`` are those that can be found."""
    names = sorted({*names, *wanted})
    table = _confusion(found, wanted, names)
    each = _f1_of_each(table)
    met = (table.sum(0) + table.sum(1)) > 0  # a class that nobody wanted and nobody found says nothing
    two = {"f1": float(each[-1])} if len(names) == 2 else {}
    return {
        "accuracy": float(np.trace(table) / max(table.sum(), 1)),
        **two,
        "macro_f1": float(each[met].mean()) if met.any() else 0.0,
        "matthews": _matthews(table),
    }


def _confusion(
    found: Sequence[str], wanted: Sequence[str], names: Sequence[str]
) -> Int[np.ndarray, "wanted found"]:
    numbers = {name: number for number, name in enumerate(names)}
    table = np.zeros((len(names), len(names)), dtype=np.int64)
    for ours, theirs in zip(found, wanted, strict=True):
        table[numbers[theirs], numbers[ours]] += 1
    return table


def _f1_of_each(table: Int[np.ndarray, "wanted found"]) -> np.ndarray:
    """2 · right / (found + wanted)."""
    either = table.sum(0) + table.sum(1)
    shares: np.ndarray = 2 * np.diag(table) / np.maximum(either, 1)
    return shares


def _matthews(table: Int[np.ndarray, "wanted found"]) -> float:
    wanted, found, total = (_sums(table, axis) for axis in (1, 0, None))
    together = np.trace(table) * total - wanted @ found
    spread = (total**2 - found @ found) * (total**2 - wanted @ wanted)
    return float(together / np.sqrt(spread)) if spread > 0 else 0.0


def _sums(table: Int[np.ndarray, "wanted found"], axis: int | None) -> np.ndarray:
    """As floats: products of four counts are beyond whole numbers."""
    return np.asarray(table.sum(axis), dtype=np.float64)
