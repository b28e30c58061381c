"""Corpora that come with the package: generated, so that they cost no download."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from regard.core.errors import UsageError, nearest
from regard.data.corpora.dates import Dated, Split, dates
from regard.data.corpora.toys import Pair, Toy, toy

__all__ = ["EMBEDDED", "Corpus", "Dated", "dates", "embedded", "toy"]


class Corpus(NamedTuple):
    """Pairs of texts for training, validation and test; no test source occurs in training."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


def _dates(train: int = 40_000, held: int = 1_000, seed: int = 0, typos: float = 0.0) -> Corpus:
    def pairs(split: Split, count: int) -> list[Pair]:
        return [(written.source, written.target) for written in dates(split, count, seed, typos)]

    def different(split: Split) -> list[Pair]:
        # A few more than needed: now and then one is written twice in the same way.
        return list(dict.fromkeys(pairs(split, held + held // 4 + 20)))[:held]

    return Corpus(pairs("train", train), different("valid"), different("test"))


def _toy(task: Toy, train: int = 20_000, held: int = 500, seed: int = 0) -> Corpus:
    pairs = toy(task, train + 2 * held, seed)
    return Corpus(pairs[2 * held :], pairs[:held], pairs[held : 2 * held])


EMBEDDED: dict[str, Callable[..., Corpus]] = {
    "dates": _dates,
    "copy": partial(_toy, "copy"),
    "reverse": partial(_toy, "reverse"),
    "sort": partial(_toy, "sort"),
}


def embedded(name: str, seed: int = 0) -> Corpus:
    """The corpus of that name."""
    if name not in EMBEDDED:
        raise UsageError(f"there is no embedded corpus {name!r}{nearest(name, EMBEDDED)}")
    return EMBEDDED[name](seed=seed)
