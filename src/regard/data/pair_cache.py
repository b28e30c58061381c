"""Prepared pairs on disk: a second start takes up what the first one made.

A folder holds the stores, the vocabularies, and last of all ``prepared.json``, without which the rest does
not count. Anything that is missing, torn or made from something else leads to preparing anew.
"""

import json
from typing import NamedTuple

from regard.core.errors import RunError
from regard.core.spec import Plain
from regard.data.encoding import Encoded, Shelf, open_pairs
from regard.data.origins import Pair
from regard.data.store import write_atomically
from regard.data.tokenizers import Tokenizer


class PairsReport(NamedTuple):
    """What became of the data."""

    data: str
    examples: int
    too_long: int
    empty: int
    first_empty: tuple[str, ...]
    validation: int
    validation_too_long: int
    validation_empty: int
    validation_seen: int | None
    """Validation sources that also occur in training; None: not counted."""
    source_tokens: int
    target_tokens: int
    source_unknown: float
    """Share of the training tokens that are unknown."""
    target_unknown: float
    source_vocabulary: int
    target_vocabulary: int
    padding_share: float
    mapped: bool
    seconds: float
    portions: int = 1
    """Epochs that one pass over the data takes."""
    sampled: int | None = None
    """None: all rows were looked at. Otherwise ``examples`` counts all there are, of which only so many were
    looked at: rows left out, tokens, unknown and padding are those of this sample."""

    def summary(self) -> list[str]:
        tokens = f"{self.source_tokens:,} → {self.target_tokens:,} tokens"
        words = f"{self.source_vocabulary:,} → {self.target_vocabulary:,}"
        there = f"{self.examples:,} examples and {self.validation:,} for validation, {tokens}"
        if self.sampled is not None:
            there = (
                f"{self.examples:,} lines in {self.portions:,} portions, {self.validation:,} for validation"
            )
        padding = f"{self.padding_share:.1%} padding"
        said = [f"{there}, vocabulary {words}, {padding}, {self.seconds:.1f} s"]
        if self.sampled is not None:
            said.append(f"looked at so far: the first portion, {self.sampled:,} lines, {tokens}")
        if self.validation_seen is None:
            said.append("whether validation sources also occur in training is not counted")
        if self.validation_seen:
            said.append(f"{self.validation_seen:,} validation sources also occur in training")
        if self.empty:
            first = ", ".join(self.first_empty)
            said.append(f"{self.empty:,} rows with an empty side are left out: {first}")
        if self.too_long:
            said.append(f"{self.too_long:,} rows longer than data.longest are left out")
        return said

    def facts(self) -> dict[str, Plain]:
        return self._asdict()


class Prepared(NamedTuple):
    """Both sides of the training data, the validation pairs, and the account of how they came about."""

    train: Encoded
    valid: list[Pair]
    report: PairsReport


def keep(prepared: Prepared, shelf: Shelf) -> None:
    """Finish a folder whose stores are already there; data that stayed in memory leaves nothing."""
    if not prepared.report.mapped:
        return
    shelf.folder.mkdir(parents=True, exist_ok=True)
    for name, side in zip(("source", "target"), prepared.train, strict=True):
        if not side.pieces.mapped:
            return  # the two sides straddle the limit: cheap enough to make again
        side.tokenizer.save(shelf.folder / f"{name}.json")
    values = {"valid": prepared.valid, "report": prepared.report._asdict()}
    write_atomically(shelf.folder / "prepared.json", json.dumps(values))


def recall(shelf: Shelf) -> Prepared | None:
    try:
        values = json.loads((shelf.folder / "prepared.json").read_text(encoding="utf-8"))
        source, target = (Tokenizer.load(shelf.folder / f"{name}.json") for name in ("source", "target"))
        report = PairsReport(**values["report"] | {"first_empty": tuple(values["report"]["first_empty"])})
        valid = [(str(a), str(b)) for a, b in values["valid"]]
    except (OSError, ValueError, KeyError, TypeError, RunError):
        return None
    train = open_pairs((source, target), shelf)
    if train is None or any(len(side.pieces) != report.examples for side in train):
        return None
    return Prepared(train, valid, report)
