"""Batches by token budget, from examples of like length, in an order that is a function of (seed, epoch).

A batch holds as many examples as fit when every one is padded to the longest: rows × longest ≤ budget, on
each side. Sorting by length makes padding small; a shuffle before it (among equals) and one after it (of
batches) make epochs differ.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Integer

from regard.core.errors import UsageError
from regard.data.randomness import keyed

_LONGEST = (1 << 15) - 2


class BatchPlan(Sequence[np.ndarray]):
    """Which examples go into which batch."""

    def __init__(self, order: np.ndarray, bounds: np.ndarray, sequence: np.ndarray, padding: float) -> None:
        self._order, self._bounds, self._sequence = order, bounds, sequence
        self.padding_share = padding

    def __len__(self) -> int:
        return len(self._sequence)

    def __getitem__(self, index: int) -> np.ndarray:  # type: ignore[override]  # batches are asked one at a time
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        batch = self._sequence[index]
        return self._order[self._bounds[batch] : self._bounds[batch + 1]]


def plan_epoch(
    lengths: Integer[np.ndarray, "examples fields"], budget: int, seed: int, epoch: int
) -> BatchPlan:
    """Every example once, in random company of its own length, batches in random order."""
    random = keyed(seed, epoch)
    order = random.permutation(len(lengths)).astype(np.int32 if len(lengths) < 1 << 31 else np.int64)
    return _plan(lengths, order, budget, random)


def evaluation_batches(lengths: Integer[np.ndarray, "examples fields"], budget: int) -> BatchPlan:
    """Every example once, shortest first, always the same."""
    return _plan(lengths, np.arange(len(lengths)), budget, None)


def _plan(
    lengths: np.ndarray, order: np.ndarray, budget: int, random: np.random.Generator | None
) -> BatchPlan:
    if len(lengths) == 0:
        return BatchPlan(order, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), 0.0)
    longest = int(lengths.max())
    if longest > min(budget, _LONGEST):
        row = int(lengths.max(axis=1).argmax())
        most = min(budget, _LONGEST)
        raise UsageError(f"example {row} has {longest} tokens, but a batch holds at most {most}")
    order = _by_length(lengths, order, random)
    bounds = np.asarray(list(_cuts(lengths, order, budget)), dtype=np.int64)
    sequence = np.arange(len(bounds) - 1)
    if random is not None:
        random.shuffle(sequence)
    return BatchPlan(order, bounds, sequence, _padding_share(lengths, order, bounds))


def _by_length(lengths: np.ndarray, order: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    """By the longer side, then by how much longer it is, up and down in turn.

    The longer side decides what a batch costs. Going back and forth over the difference keeps neighbours
    alike also where one length ends and the next begins: this pads a third less than sorting by one side.
    Stable sorts of 16-bit keys take linear time, and keep the shuffled order among equals.
    """
    longer = lengths.max(axis=1).astype(np.int16)
    difference = lengths[:, 0].astype(np.int16) - lengths[:, -1].astype(np.int16)
    turn = longer & 1
    if random is not None:
        # Lengths alone would put the same examples together in every epoch: blur, and begin anywhere.
        difference += random.integers(-1, 2, size=len(difference), dtype=np.int16)
        turn ^= random.integers(2, dtype=np.int16)
    order = order[np.argsort(np.where(turn, -difference, difference)[order], kind="stable")]
    order = order[np.argsort(longer[order], kind="stable")]
    return order[::-1] if random is not None and random.random() < 0.5 else order


def _cuts(lengths: np.ndarray, order: np.ndarray, budget: int) -> Iterator[int]:
    """Where batches begin, and the end: each takes as many examples as fit."""
    start, total = 0, len(order)
    yield start
    while start < total:
        longest = int(lengths[order[start]].max())
        window = lengths[order[start : start + budget // max(1, longest) + 1]]
        # Later examples may be longer: the running maximum says what padding would cost up to each.
        cost = np.maximum.accumulate(window.max(axis=1)).astype(np.int64) * np.arange(1, len(window) + 1)
        start += max(1, int(np.searchsorted(cost, budget, side="right")))
        yield min(start, total)


def _padding_share(lengths: np.ndarray, order: np.ndarray, bounds: np.ndarray) -> float:
    starts, rows = bounds[:-1], np.diff(bounds)
    room = real = 0
    for column in range(lengths.shape[1]):
        arranged = lengths[order, column]
        room += int((np.maximum.reduceat(arranged, starts).astype(np.int64) * rows).sum())
        real += int(arranged.sum(dtype=np.int64))
    return 1.0 - real / room if room else 0.0
