"""Words and the words around them: what word vectors are learned from.

Frequent words are left out at random, the words that are left stand side by side, and how far each looks is
drawn anew every time (Mikolov et al. 2013a §3, 2013b §2.2 to 2.3). A batch comes in groups of consecutive
words: a group shares the words around it and the words drawn from everywhere, so that all its comparisons
are one matrix product.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from pydantic import Field, model_validator
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.data.documents import GivenText
from regard.data.lexicon import Lexicon
from regard.data.randomness import keyed
from regard.data.text import PreparedText, TextPlan, TextReport
from regard.data.word_questions import read_questions
from regard.data.words import canonical, words_of

_FEWEST_GROUPS = 16
_JUDGED = 0x5EED
"""Where validation draws: always the same."""


class WordWindowsSpec(TextPlan):
    """How text becomes words and those around them; a batch is made of ``rows`` windows."""

    radius: int = Field(default=5, ge=1)
    """Farthest that a word looks to either side; how far it does is drawn evenly from 1 to this."""
    sample: float = Field(default=1e-3, ge=0)
    """Share of the text above which a word is frequent, and left out the more often the more so; 0: never."""
    group: int = Field(default=32, ge=1)
    """Consecutive words that share what they are compared with."""
    noise: int = Field(default=32, ge=1)
    """Words that are drawn from everywhere for each group."""
    power: float = Field(default=0.75, ge=0)
    """What frequencies are raised to where words are drawn from everywhere."""

    @model_validator(mode="after")
    def _possible(self) -> "WordWindowsSpec":
        if self.order != "shuffled" or self.backwards:
            raise ValueError("windows of words stand alone: order=shuffled, backwards=false")
        return self

    def prepare(
        self, train: GivenText, valid: GivenText | None, seed: int, known: Lexicon | None, cache: Path | None
    ) -> "PreparedWords":
        return PreparedWords(self, seed, self.read_text(train, valid, seed, known, cache))

    def records(self, data: str) -> list[tuple[str, ...]]:
        """What people said about words: pairs and how alike they are, or analogies."""
        return read_questions(data)


class WordBatch(NamedTuple):
    line: Int[Tensor, "places"]
    """The words that are left, side by side, with as many places to both sides as anyone may look."""
    near: Bool[Tensor, "groups group distances"]
    """Whom each word looks at: from the farthest before it to the farthest after it."""
    noise: Int[Tensor, "groups noise"]
    """Words drawn from everywhere."""
    rows: np.ndarray

    @property
    def words(self) -> Int[Tensor, "groups group"]:
        """Those that look."""
        return self.line[self.radius : len(self.line) - self.radius].view(self.near.shape[:2])

    @property
    def around(self) -> Int[Tensor, "groups span"]:
        """The words of each group, and as many to both sides as anyone may look."""
        group = self.near.shape[1]
        return self.line.unfold(0, group + 2 * self.radius, group)

    @property
    def radius(self) -> int:
        return self.near.shape[2] // 2

    def to(self, device: torch.device | str) -> "WordBatch":
        return WordBatch(self.line.to(device), self.near.to(device), self.noise.to(device), self.rows)

    def split(self, parts: int) -> list["WordBatch"]:
        """At most so many batches of consecutive groups, none too small to be worth a thread."""
        groups, group, _ = self.near.shape
        parts = max(1, min(parts, groups // _FEWEST_GROUPS))
        bounds = [groups * part // parts for part in range(parts + 1)]
        return [
            WordBatch(
                self.line[begin * group : end * group + 2 * self.radius],
                self.near[begin:end],
                self.noise[begin:end],
                self.rows,
            )
            for begin, end in pairwise(bounds)
        ]


class PreparedWords:
    """Batches are functions of (seed, epoch, index): other words are left out and drawn every time."""

    def __init__(self, spec: WordWindowsSpec, seed: int, text: PreparedText) -> None:
        self.spec, self.seed, self._text = spec, seed, text
        self.fingerprint, self.lexicon = text.fingerprint, text.lexicon
        self.report: TextReport = text.report
        tokenizer = text.lexicon["text"]
        same = canonical(tokenizer)
        counts = np.zeros(tokenizer.size, dtype=np.int64)
        np.add.at(counts, same, text.token_counts("text"))
        counts[[mark for mark in tokenizer.marks if mark is not None]] = 0
        if not counts.any():
            raise DataError("there is no word to learn from: none is as frequent as tokenizer.min_count asks")
        self.counts = counts
        self._maker = WindowMaker(spec, same, counts, tokenizer.end)

    def epoch(self, number: int) -> "WordWindows":
        return WordWindows(self._maker, self._text.stream, self.seed, number)

    def validation(self) -> "WordWindows":
        return WordWindows(self._maker, self._text.judged, _JUDGED, None)

    def examples(self, most: int) -> list[tuple[str, str]]:
        """Words from the most frequent to rare ones, to see what is near them."""
        numbers = words_of(self.lexicon["text"])
        ranked = sorted(numbers, key=lambda word: -int(self.counts[numbers[word]]))
        ranked = [word for word in ranked if self.counts[numbers[word]] and word.isalpha()] or ranked
        # Ranks grow as a power: half of what is shown is frequent enough to be known well.
        places = sorted({int(len(ranked) ** (place / most)) - 1 for place in range(most)})
        return [(ranked[place], "") for place in places]

    def token_counts(self, field: str) -> np.ndarray:
        return self._text.token_counts(field)

    def close(self) -> None:
        """Nothing is prepared ahead of time."""


class WindowMaker:
    """Turns places in a text into words and those around them."""

    def __init__(self, spec: WordWindowsSpec, same: np.ndarray, counts: np.ndarray, end: int) -> None:
        self.spec, self._same, self._end = spec, same, end
        self._kept = kept_share(counts, spec.sample)
        weights = np.where(counts > 0, counts.astype(np.float64) ** spec.power, 0.0)
        self._drawn = np.cumsum(weights) / weights.sum()

    def batch(self, stream: np.ndarray, starts: np.ndarray, random: np.random.Generator) -> WordBatch:
        spec = self.spec
        ids = np.asarray(stream[starts[:, None] + np.arange(min(spec.window, len(stream)))])
        # Another document, or another window, is out of sight.
        begins = ids == self._end
        begins[:, 0] = True
        document, ids = np.cumsum(begins.ravel()), self._same[ids.ravel()]
        kept = random.random(len(ids)) < self._kept[ids]
        ids, document = ids[kept], document[kept]
        groups = -(-max(len(ids), 1) // spec.group)
        padding = groups * spec.group - len(ids)
        ids = np.pad(ids, (spec.radius, spec.radius + padding))
        # No two of the padding are of one document, so that nobody looks there, or from there.
        nowhere = -1 - np.arange(2 * spec.radius + padding)
        document = np.concatenate((nowhere[: spec.radius], document, nowhere[spec.radius :]))
        reach = random.integers(1, spec.radius + 1, groups * spec.group)
        noise = np.searchsorted(self._drawn, random.random((groups, spec.noise)), side="right")
        return WordBatch(
            torch.from_numpy(ids.astype(np.int64)),
            torch.from_numpy(_near(document, reach).reshape(groups, spec.group, 2 * spec.radius + 1)),
            torch.from_numpy(noise.astype(np.int64)),
            starts,
        )


def _near(document: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Whom each looks at that has something to both sides: others of its document within its reach."""
    radius = (len(document) - len(reach)) // 2
    distance = np.abs(np.arange(2 * radius + 1) - radius)
    beside = np.lib.stride_tricks.sliding_window_view(document, 2 * radius + 1)
    near: np.ndarray = beside == document[radius : radius + len(reach), None]
    near &= distance <= reach[:, None]
    near[:, radius] = False
    return near


def kept_share(counts: np.ndarray, sample: float) -> np.ndarray:
    """√(t/f) + t/f of a word whose share of the text is f, at most 1: eq. 5 as in the authors' program.

    What does not count as a word is never kept.
    """
    share = counts / max(1, counts.sum())
    with np.errstate(divide="ignore"):
        rarity = np.where(counts > 0, sample / share, 0.0) if sample else np.where(counts > 0, 1.0, 0.0)
    kept: np.ndarray = np.minimum(1.0, np.sqrt(rarity) + rarity)
    return kept


class WordWindows(Sequence[WordBatch]):
    padding_share = 0.0

    def __init__(self, maker: WindowMaker, stream: np.ndarray, seed: int, epoch: int | None) -> None:
        self._maker, self._stream, self._seed, self._epoch = maker, stream, seed, epoch or 0
        if len(stream) < 2:
            raise UsageError("there is no text to validate on: give --valid, or more text")
        window, rows = min(maker.spec.window, len(stream)), maker.spec.rows
        random = keyed(seed, self._epoch)
        first = 0 if epoch is None else int(random.integers(0, len(stream) % window + 1))
        starts = np.arange(first, len(stream) - window + 1, window)
        starts = starts if epoch is None else random.permutation(starts)
        self._starts = [starts[cut : cut + rows] for cut in range(0, len(starts), rows)]

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> WordBatch:  # type: ignore[override]  # one batch at a time
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        random = keyed(self._seed, self._epoch, index)
        return self._maker.batch(self._stream, self._starts[index], random)
