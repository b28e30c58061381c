"""Sentences as ids, of lengths as people write them, and a reader of MiniLM's size: the same for everyone."""

import argparse
from collections.abc import Iterator

import numpy as np

SIZES = ("layers", "width", "heads", "hidden", "positions", "vocabulary", "texts", "rows")


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args()


def drawn(texts: int, vocabulary: int) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    lengths = np.clip(np.round(random.lognormal(3.0, 0.45, texts)), 4, 64).astype(int)
    return [random.integers(4, vocabulary, length) for length in lengths]


def batches(rows: list[np.ndarray], size: int) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Of like length together, as all of them do it: numbers, padded ids, lengths."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    for begin in range(0, len(order), size):
        numbers = order[begin : begin + size]
        lengths = np.array([len(rows[number]) for number in numbers])
        ids = np.zeros((len(numbers), lengths.max()), dtype=np.int64)
        for row, number in zip(ids, numbers, strict=True):
            row[: len(rows[number])] = rows[number]
        yield numbers, ids, lengths
