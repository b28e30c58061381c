"""The same text for all: raw lines for Regard, and its own subword ids for peers that bring no tokenizer."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.recipes.catalogue import recipe

PAD, BEGIN, END = 0, 1, 2
SUBWORDS = ("data.source.size=10000", "data.target.size=10000")
"""One vocabulary for all contestants, whatever a recipe's own would be."""


class Side(NamedTuple):
    """Rows of ids one after another, without marks."""

    ids: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, rows: list[list[int]]) -> "Side":
        flat = np.fromiter((piece for row in rows for piece in row), dtype=np.int64)
        return cls(flat, np.array([len(row) for row in rows], dtype=np.int64))

    def rows(self) -> list[np.ndarray]:
        return np.split(self.ids, np.cumsum(self.lengths)[:-1])


class Corpus(NamedTuple):
    source: Side
    target: Side
    vocabulary: int

    def save(self, path: Path) -> None:
        np.savez(
            path,
            source_ids=self.source.ids,
            source_lengths=self.source.lengths,
            target_ids=self.target.ids,
            target_lengths=self.target.lengths,
            vocabulary=self.vocabulary,
        )

    @classmethod
    def load(cls, path: Path) -> "Corpus":
        with np.load(path) as file:
            source = Side(file["source_ids"], file["source_lengths"])
            target = Side(file["target_ids"], file["target_lengths"])
            return cls(source, target, int(file["vocabulary"]))


def batches(corpus: Corpus, budget: int, seed: int) -> list[np.ndarray]:
    """An epoch as most loops make it: sorted by length, cut by padded tokens with marks, shuffled."""
    random = np.random.default_rng(seed)
    longer = np.maximum(corpus.source.lengths, corpus.target.lengths) + 1
    order = random.permutation(len(longer))
    order = order[np.lexsort((corpus.source.lengths[order], corpus.target.lengths[order]))]
    found, begin, longest = [], 0, 0
    for place, row in enumerate(order):
        longest = max(longest, int(longer[row]))
        if longest * (place - begin + 1) > budget:
            found.append(order[begin:place])
            begin, longest = place, int(longer[row])
    found.append(order[begin:])
    random.shuffle(found)
    return found


def padded(rows: list[np.ndarray], begin: bool, end: bool) -> np.ndarray:
    marked = [[BEGIN] * begin + [*row] + [END] * end for row in rows]
    out = np.full((len(marked), max(map(len, marked))), PAD, dtype=np.int64)
    for line, row in zip(out, marked, strict=True):
        line[: len(row)] = row
    return out


def prepare(folder: Path, train: tuple[Path, Path], most: int | None = None) -> None:
    """Write train.src, train.tgt and corpus.npz into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = [path.read_text(encoding="utf-8").splitlines()[:most] for path in train]
    for name, lines in zip(("src", "tgt"), sides, strict=True):
        (folder / f"train.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    spec = recipe("transformer_tiny").override(SUBWORDS).data
    pairs = spec.prepare(str(folder / "train.{src,tgt}"), None, 1, None, None)
    tokenizers = pairs.lexicon["source"], pairs.lexicon["target"]
    source, target = (Side.of(t.encode_many(lines)) for t, lines in zip(tokenizers, sides, strict=True))
    Corpus(source, target, tokenizers[1].size).save(folder / "corpus.npz")
