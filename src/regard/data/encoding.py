"""Rows of text become stores of tokens, a block at a time, with a count of what happened."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.data.origins import Pair
from regard.data.pair_batches import MARKS, PairStores
from regard.data.readers import ReadReport
from regard.data.store import StoreWriter, TokenStore, element_type
from regard.data.tokenizers import Marks, Tokenizer

_BLOCK = 4096
"""Rows encoded at once: enough for the tokenizer's threads, little in memory."""
_SIDES = ("source", "target")


@dataclass
class Tally:
    """Rows seen while encoding, and for (source, target) how many tokens, how many of them unknown."""

    rows: int = 0
    too_long: int = 0
    tokens: list[int] = field(default_factory=lambda: [0, 0])
    unknown: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True)
class Shelf:
    """Where stores go once they are too large for memory, and what marks them as made from this data."""

    folder: Path
    fingerprint: bytes
    memory_limit: int

    @classmethod
    def none(cls) -> "Shelf":
        """For what is certainly small: everything stays in memory."""
        return cls(Path(), bytes(32), sys.maxsize)

    def writer(self, name: str, kind: type[np.generic]) -> StoreWriter:
        return StoreWriter(kind, self.memory_limit, self.folder / name, self.fingerprint)

    def open(self, name: str) -> TokenStore | None:
        return TokenStore.open(self.folder / name, self.fingerprint)


class Side(NamedTuple):
    """One side of a corpus: its pieces, and its texts (UTF-8) if dropout draws pieces anew each epoch."""

    tokenizer: Tokenizer
    pieces: TokenStore
    texts: TokenStore | None

    def text(self, row: int) -> str:
        assert self.texts is not None
        return self.texts[row].tobytes().decode("utf-8")


class Encoded(NamedTuple):
    source: Side
    target: Side

    @property
    def stores(self) -> PairStores:
        return PairStores(self.source.pieces, self.target.pieces, self.marks)

    @property
    def marks(self) -> tuple[Marks, Marks]:
        return self.source.tokenizer.marks, self.target.tokenizer.marks


def encode_pairs(
    rows: Iterable[Pair], tokenizers: tuple[Tokenizer, Tokenizer], longest: int, shelf: Shelf
) -> tuple[Encoded, Tally]:
    """Every pair of which neither side is longer than ``longest`` tokens, marks counted."""
    tally = Tally()
    writers = {
        name: shelf.writer(f"{name}.tokens", element_type(tokenizer.size))
        for name, tokenizer in zip(_SIDES, tokenizers, strict=True)
    }
    for name, tokenizer in zip(_SIDES, tokenizers, strict=True):
        if tokenizer.spec.dropout:
            writers[f"{name} text"] = shelf.writer(f"{name}.text", np.uint8)
    try:
        for block in _blocks(rows):
            _encode_block(block, tokenizers, longest, writers, tally)
        stores = {name: writer.finish() for name, writer in writers.items()}
    finally:
        for writer in writers.values():
            writer.discard()
    source, target = (
        Side(tokenizer, stores[name], stores.get(f"{name} text"))
        for name, tokenizer in zip(_SIDES, tokenizers, strict=True)
    )
    return Encoded(source, target), tally


def open_pairs(tokenizers: tuple[Tokenizer, Tokenizer], shelf: Shelf) -> Encoded | None:
    """What ``encode_pairs`` left on the shelf, if all of it is there and whole."""
    sides = []
    for name, tokenizer in zip(_SIDES, tokenizers, strict=True):
        pieces = shelf.open(f"{name}.tokens")
        texts = shelf.open(f"{name}.text") if tokenizer.spec.dropout else None
        if pieces is None or (tokenizer.spec.dropout and texts is None):
            return None
        sides.append(Side(tokenizer, pieces, texts))
    return Encoded(*sides)


def draw_pairs(encoded: Encoded, seed: int, epoch: int, longest: int, shelf: Shelf) -> PairStores:
    """The pieces of an epoch: drawn anew where BPE dropout is on, the same as ever where it is not."""
    source, target = (
        _draw_side(side, seed, epoch, stream, longest, shelf) for stream, side in enumerate(encoded)
    )
    return PairStores(source, target, encoded.marks)


def _draw_side(side: Side, seed: int, epoch: int, stream: int, longest: int, shelf: Shelf) -> TokenStore:
    if side.texts is None:
        return side.pieces
    writer = shelf.writer(f"{_SIDES[stream]}.epoch", element_type(side.tokenizer.size))
    try:
        for start in range(0, len(side.pieces), _BLOCK):
            rows = range(start, min(start + _BLOCK, len(side.pieces)))
            writer.add([_draw_row(side, row, seed, epoch, stream, longest) for row in rows])
        return writer.finish()
    finally:
        writer.discard()


def _draw_row(side: Side, row: int, seed: int, epoch: int, stream: int, longest: int) -> list[int]:
    # Two streams of chance a row: the same drops on both sides would not be independent noise.
    pieces = side.tokenizer.encode_with_dropout(side.text(row), seed, epoch, 2 * row + stream)
    # A model may have no position for more: then this row goes without dropout this time.
    return pieces if len(pieces) + MARKS <= longest else side.pieces[row].tolist()


def _encode_block(
    block: list[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    longest: int,
    writers: dict[str, StoreWriter],
    tally: Tally,
) -> None:
    sides = [
        tokenizer.encode_many([pair[side] for pair in block]) for side, tokenizer in enumerate(tokenizers)
    ]
    most = longest - MARKS
    kept = [i for i in range(len(block)) if len(sides[0][i]) <= most and len(sides[1][i]) <= most]
    tally.rows += len(kept)
    tally.too_long += len(block) - len(kept)
    for side, name in enumerate(_SIDES):
        rows = [sides[side][i] for i in kept]
        writers[name].add(rows)
        tally.tokens[side] += sum(len(row) for row in rows)
        tally.unknown[side] += sum(row.count(tokenizers[side].unknown) for row in rows)
        if f"{name} text" in writers:
            texts = [np.frombuffer(block[i][side].encode(), dtype=np.uint8) for i in kept]
            writers[f"{name} text"].add(texts)


def short_enough(pairs: list[Pair], tokenizers: tuple[Tokenizer, Tokenizer], longest: int) -> list[Pair]:
    """Those of which neither side is longer than ``longest`` tokens, marks counted."""
    sides = (tokenizer.encode_many([pair[i] for pair in pairs]) for i, tokenizer in enumerate(tokenizers))
    lengths = zip(*sides, strict=True)
    return [
        pair
        for pair, rows in zip(pairs, lengths, strict=True)
        if max(len(row) for row in rows) + MARKS <= longest
    ]


def left_out(read: ReadReport, tally: Tally, longest: int) -> list[str]:
    """How many rows are not trained on, and why."""
    said = []
    if read.empty:
        said.append(f"{read.empty} with an empty side")
    if tally.too_long:
        said.append(f"{tally.too_long} longer than longest={longest} tokens")
    return said


def nothing_left(read: ReadReport, tally: Tally, longest: int) -> str:
    return "no pair is left to train on: " + (", ".join(left_out(read, tally, longest)) or "there are none")


def _blocks(rows: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(rows)
    while block := list(islice(iterator, _BLOCK)):
        yield block
