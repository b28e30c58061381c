"""Batches of running text: windows without padding, side by side.

``shuffled``: windows of one epoch do not overlap, begin at a random place, and come in random order.
``running``: the text is cut into as many lanes as a batch has rows; each batch goes on where the one before
it stopped, so that a model may carry its state along.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.core.sequences import Tokens
from regard.data.letters import Letters
from regard.data.randomness import keyed

_FEWEST_TOKENS = 256


class TextBatch(NamedTuple):
    """Row i of ``wanted`` is row i of ``given`` one token further on; ``rows`` says where in the text."""

    given: Tokens
    wanted: Int[Tensor, "batch time"]
    rows: np.ndarray
    continues: bool

    def to(self, device: torch.device | str) -> "TextBatch":
        return TextBatch(self.given.to(device), self.wanted.to(device), self.rows, self.continues)

    def split(self, parts: int) -> list["TextBatch"]:
        """At most so many batches of consecutive rows, none too small to be worth a thread."""
        parts = max(1, min(parts, len(self.rows), self.wanted.numel() // _FEWEST_TOKENS))
        bounds = [len(self.rows) * part // parts for part in range(parts + 1)]
        return [
            TextBatch(
                self.given.between(begin, end),
                self.wanted[begin:end],
                self.rows[begin:end],
                self.continues,
            )
            for begin, end in pairwise(bounds)
        ]


class TextBatches(Sequence[TextBatch]):
    """Batch i has the windows that begin at ``starts[i]``, each ``lengths[i]`` predictions long."""

    padding_share = 0.0

    def __init__(
        self, stream: np.ndarray, starts: Sequence[np.ndarray], lengths: Sequence[int], running: bool
    ) -> None:
        self._stream, self._starts, self._lengths, self._running = stream, starts, lengths, running
        self._letters: Letters | None = None

    def spelled(self, letters: Letters | None) -> "TextBatches":
        """The same with the letters of every word; None: without."""
        self._letters = letters
        return self

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> TextBatch:  # type: ignore[override]  # one batch at a time
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        starts = self._starts[index]
        # Lanes of a rotated text run over its end into its beginning.
        places = (starts[:, None] + np.arange(self._lengths[index] + 1)) % len(self._stream)
        ids = torch.from_numpy(self._stream[places].astype(np.int64))
        given = Tokens.whole(ids[:, :-1])
        if self._letters is not None:
            given = given._replace(letters=self._letters.of(given.ids.numpy()))
        return TextBatch(given, ids[:, 1:], starts, self._running and index > 0)


def shuffled_windows(stream: np.ndarray, window: int, rows: int, seed: int, epoch: int) -> TextBatches:
    """Every prediction once, up to where windows happen to begin and end."""
    predictions = len(stream) - 1
    window = min(window, predictions)
    random = keyed(seed, epoch)
    # Another beginning in every epoch: other tokens get the short end of their context.
    first = int(random.integers(0, predictions % window + 1))
    starts = random.permutation(np.arange(first, predictions - window + 1, window))
    cuts = range(0, len(starts), rows)
    return TextBatches(stream, [starts[cut : cut + rows] for cut in cuts], [window] * len(cuts), False)


def running_lanes(
    stream: np.ndarray, window: int, rows: int, seed: int, epoch: int, jitter: float = 0.0
) -> TextBatches:
    """Lanes from a random place on; with ``jitter``, windows of lengths drawn around ``window``."""
    predictions = len(stream) - 1
    rows = min(rows, predictions)
    lane = predictions // rows
    random = keyed(seed, epoch)
    shift = int(random.integers(0, len(stream))) if epoch else 0
    lanes = shift + lane * np.arange(rows)
    bounds = _bounds(lane, min(window, lane), jitter, random)
    return TextBatches(
        stream, [lanes + begin for begin in bounds[:-1]], [int(n) for n in np.diff(bounds)], True
    )


def in_order(stream: np.ndarray, window: int, rows: int, running: bool) -> TextBatches:
    """For evaluation: always the same, every prediction exactly once."""
    predictions = len(stream) - 1
    if running:
        rows = max(1, min(rows, predictions // window))
        lane = predictions // rows
        lanes, bounds = lane * np.arange(rows), _bounds(lane, min(window, lane), 0.0, None)
        return TextBatches(stream, [lanes + begin for begin in bounds[:-1]], np.diff(bounds).tolist(), True)
    window = min(window, predictions)
    starts = np.arange(0, predictions - window + 1, window)
    batches = [starts[cut : cut + rows] for cut in range(0, len(starts), rows)]
    lengths = [window] * len(batches)
    if rest := predictions - len(starts) * window:
        batches.append(np.array([len(starts) * window]))
        lengths.append(rest)
    return TextBatches(stream, batches, lengths, False)


def _bounds(lane: int, window: int, jitter: float, random: np.random.Generator | None) -> np.ndarray:
    """Where windows of a lane begin, and its end."""
    if random is None or not jitter:
        return np.append(np.arange(0, lane, window), lane)
    # Half of all windows are short at one time in twenty, and all vary (Merity et al. 2017 §5).
    count = 2 * lane // window + 2
    base = np.where(random.random(count) < 0.95, window, window / 2)
    lengths = np.maximum(5, random.normal(base, jitter)).astype(np.int64)
    ends = np.cumsum(lengths)
    return np.concatenate(([0], ends[ends < lane], [lane]))
