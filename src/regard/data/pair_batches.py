"""Batches of pairs, made when they are asked for."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int32

from regard.core.sequences import Tokens
from regard.data.batches import BatchPlan
from regard.data.store import TokenStore
from regard.data.tokenizers import Marks

_FEWEST_TOKENS = 512
MARKS = 2
"""Begin and end: what a text may cost beside its pieces."""


class PairBatch(NamedTuple):
    """Source = pieces + [end]; target = [begin] + pieces + [end]; ``rows`` says which examples they are."""

    source: Tokens
    target: Tokens
    rows: np.ndarray

    def to(self, device: torch.device | str) -> "PairBatch":
        return PairBatch(self.source.to(device), self.target.to(device), self.rows)

    def split(self, parts: int) -> list["PairBatch"]:
        """At most so many batches of consecutive rows, none too small to be worth a thread."""
        parts = max(1, min(parts, len(self.rows), self.target.ids.numel() // _FEWEST_TOKENS))
        bounds = [len(self.rows) * part // parts for part in range(parts + 1)]
        if parts == 1:
            return [self]
        return [
            PairBatch(self.source.between(begin, end), self.target.between(begin, end), self.rows[begin:end])
            for begin, end in pairwise(bounds)
        ]


class PairStores(NamedTuple):
    """The pieces of both sides; row i of one belongs to row i of the other."""

    source: TokenStore
    target: TokenStore
    marks: tuple[Marks, Marks]
    """Of both vocabularies."""

    @property
    def lengths(self) -> Int32[np.ndarray, "rows 2"]:
        """Tokens of each row as they stand in a batch."""
        return np.stack((self.source.lengths + 1, self.target.lengths + MARKS), axis=1)


class PairBatches(Sequence[PairBatch]):
    """The batches of a plan."""

    def __init__(self, plan: BatchPlan, stores: PairStores, notice: str | None = None) -> None:
        self._plan, self.stores = plan, stores
        self.notice = notice
        """What a person should know about these batches, if anything."""

    @property
    def padding_share(self) -> float:
        return self._plan.padding_share

    def __len__(self) -> int:
        return len(self._plan)

    def token_counts(self, field: str, vocabulary: int) -> np.ndarray:
        """How often each token stands in the source or the target of all pairs."""
        store = {"source": self.stores.source, "target": self.stores.target}[field]
        return np.bincount(store.values, minlength=vocabulary)

    def __getitem__(self, index: int) -> PairBatch:  # type: ignore[override]  # one batch at a time
        rows = self._plan[index]
        marks, target_marks = self.stores.marks
        source = self.stores.source.padded(rows, marks.pad, None, marks.end)
        target = self.stores.target.padded(rows, target_marks.pad, target_marks.begin, target_marks.end)
        return PairBatch(source, target, rows)
