"""Passages of text with some tokens hidden, alone or two by two: what a reader learns from that guesses.

[begin] a [end], where a may run over the ends of documents (FULL-SENTENCES, Liu et al. 2019 §4.2); or
[begin] a [end] b [end], where a is of one document and a relation says what b is (Devlin et al. 2019 §3.1).
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from pydantic import Field, model_validator
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.sequences import Places, Tokens
from regard.data.documents import GivenText
from regard.data.hiding import HidingSpec
from regard.data.lexicon import Lexicon
from regard.data.randomness import keyed
from regard.data.relations import RelationSpec, Span
from regard.data.text import PreparedText, TextPlan, TextReport
from regard.data.tokenizers import Tokenizer
from regard.data.units import CONTINUED, SPACE

_FEWEST_TOKENS = 512
_FEWEST_IN_PAIR = 4
"""Tokens of two passages together."""
_POOLED = 64
"""Batches whose rows are sorted by length together."""
_JUDGED = 0x5EED
"""Where validation draws what it hides: always the same."""


class PassagesSpec(TextPlan):
    """How text becomes passages to guess in. A ``window`` is a row, marks counted."""

    hiding: HidingSpec = HidingSpec()
    relation: RelationSpec | None = None
    """Two passages a row, and whether they are related so; null: one passage a row."""
    short: float = Field(default=0.0, ge=0, lt=1)
    """Share of the rows that are cut to a random length, where rows hold two passages: to read short texts
    as well as long ones."""

    @model_validator(mode="after")
    def _possible(self) -> "PassagesSpec":
        least = 3 if self.relation is None else 7
        if self.window < least:
            raise ValueError(f"window={self.window}, but a row needs at least {least} tokens, marks counted")
        if self.short and self.relation is None:
            raise ValueError(f"short={self.short}, but rows of one passage are all of one length")
        if self.order != "shuffled" or self.backwards:
            raise ValueError("passages stand alone and are read as a whole: order=shuffled, backwards=false")
        if self.tokenizer.unit != "imported" and not self.tokenizer.hides:
            raise ValueError("tokens are hidden under a mark of their own: tokenizer.hides=true")
        return self

    def prepare(
        self, train: GivenText, valid: GivenText | None, seed: int, known: Lexicon | None, cache: Path | None
    ) -> "PreparedPassages":
        return PreparedPassages(self, seed, self.read_text(train, valid, seed, known, cache))


class PassageBatch(NamedTuple):
    tokens: Tokens
    places: Places
    wanted: Int[Tensor, "batch asked"]
    """What was hidden at each place."""
    follows: Int[Tensor, "batch 1"] | None
    """1 where the two passages are related as they should be; None: there is no second."""
    rows: np.ndarray

    def to(self, device: torch.device | str) -> "PassageBatch":
        follows = None if self.follows is None else self.follows.to(device)
        moved = self.tokens.to(device), self.places.to(device), self.wanted.to(device)
        return PassageBatch(*moved, follows, self.rows)

    def split(self, parts: int) -> list["PassageBatch"]:
        """At most so many batches of consecutive rows, none too small to be worth a thread."""
        parts = max(1, min(parts, len(self.rows), self.tokens.ids.numel() // _FEWEST_TOKENS))
        bounds = [len(self.rows) * part // parts for part in range(parts + 1)]
        return [
            PassageBatch(
                self.tokens.between(begin, end),
                places := self.places.between(begin, end),
                self.wanted[begin:end, : places.at.shape[1]],
                None if self.follows is None else self.follows[begin:end],
                self.rows[begin:end],
            )
            for begin, end in pairwise(bounds)
        ]


class PreparedPassages:
    """Batches are functions of (seed, epoch, index): other tokens are hidden every time."""

    def __init__(self, spec: PassagesSpec, seed: int, text: PreparedText) -> None:
        self.spec, self.seed, self._text = spec, seed, text
        self.fingerprint, self.lexicon = text.fingerprint, text.lexicon
        self.report: TextReport = text.report
        tokenizer = text.lexicon["text"]
        if tokenizer.marks.hidden is None:
            raise UsageError(
                "this vocabulary has no token for what is hidden: start from a reader that guesses, or let "
                "it learn its own"
            )
        self._maker = PassageMaker(spec, tokenizer)

    def epoch(self, number: int) -> "Passages":
        return Passages(self._maker, self._text.stream, self.seed, number)

    def validation(self) -> "Passages":
        return Passages(self._maker, self._text.judged, _JUDGED, None)

    def examples(self, most: int) -> list[tuple[str, str]]:
        """Sentences of which one word is hidden, and the word."""
        return self._text.examples(most)

    def token_counts(self, field: str) -> np.ndarray:
        return self._text.token_counts(field)

    def close(self) -> None:
        """Nothing is prepared ahead of time."""


class PassageMaker:
    """Turns places in a text into rows with hidden tokens."""

    def __init__(self, spec: PassagesSpec, tokenizer: Tokenizer) -> None:
        self.spec, self.marks = spec, tokenizer.marks
        assert self.marks.hidden is not None
        self.room = spec.window - (2 if spec.relation is None else 3)
        special = np.zeros(tokenizer.size, dtype=bool)
        special[[mark for mark in self.marks if mark is not None]] = True
        self._special, self._others = special, np.flatnonzero(~special)
        self._begins = begins_word(tokenizer)

    def documents(self, stream: np.ndarray) -> Int[np.ndarray, "documents ends"]:
        """Where each begins and ends; without a relation all are one."""
        if self.spec.relation is None:
            return np.array([[0, len(stream)]])
        ends = np.flatnonzero(stream == self.marks.end)
        bounds = np.concatenate(([0], ends + 1)), np.concatenate((ends, [len(stream)]))
        spans: np.ndarray = np.stack(bounds, axis=1)
        long_enough: np.ndarray = spans[spans[:, 1] - spans[:, 0] >= _FEWEST_IN_PAIR]
        return long_enough

    def spans(self, documents: np.ndarray, random: np.random.Generator | None) -> list[Span]:
        """Passages of an epoch: of other lengths, and from other places, every time ``random`` is given."""
        found = list[Span]()
        paired = self.spec.relation is not None
        for number, (begin, end) in enumerate(documents.tolist()):
            if random is not None and end - begin > self.room:
                begin += int(random.integers(0, (end - begin) % self.room + 1))
            # What is left of a document is a row of its own where rows may be of any length.
            least = min(_FEWEST_IN_PAIR, self.room) if paired else self.room
            while end - begin >= least:
                length = self._length(random)
                found.append(Span(begin, min(begin + length, end), number))
                begin += length
        return found

    def _length(self, random: np.random.Generator | None) -> int:
        if random is None or not self.spec.short or random.random() >= self.spec.short:
            return self.room
        return int(random.integers(_FEWEST_IN_PAIR, self.room + 1))

    def batch(
        self, stream: np.ndarray, documents: np.ndarray, spans: Sequence[Span], random: np.random.Generator
    ) -> PassageBatch:
        rows = [self._row(stream, documents, span, random) for span in spans]
        tokens = Tokens.pad([row for row, _, _ in rows], self.marks.pad)
        ids = tokens.ids.numpy()
        hidden = self.spec.hiding.hide(
            ids, ~self._special[ids], self._begins[ids], self.marks.hidden or 0, self._others, random
        )
        places = [np.flatnonzero(asked) for asked in hidden.asked]
        wanted = Tokens.pad([row[at] for row, at in zip(ids, places, strict=True)], 0).ids
        tokens, follows = tokens._replace(ids=torch.from_numpy(hidden.shown.astype(np.int64))), None
        if self.spec.relation is not None:
            second, time = torch.tensor([begin for _, begin, _ in rows]), torch.arange(ids.shape[1])
            tokens = tokens._replace(segments=((time >= second[:, None]) & tokens.real).long())
            follows = torch.tensor([[label] for _, _, label in rows])
        return PassageBatch(
            tokens, Places.pad(places), wanted, follows, np.array([span.begin for span in spans])
        )

    def _row(
        self, stream: np.ndarray, documents: np.ndarray, span: Span, random: np.random.Generator
    ) -> tuple[np.ndarray, int, int]:
        """The row, where its second passage begins, and whether that is related to the first."""
        begin, end = [self.marks.begin], [self.marks.end]
        if self.spec.relation is None:
            row = np.concatenate((begin, stream[span.begin : span.end], end))
            return row, len(row), 0
        length = span.end - span.begin
        cut = int(random.integers(max(1, length // 4), length - max(1, length // 4) + 1))
        first, second, holds = self.spec.relation.relate(span, cut, documents, random)
        one, other = (stream[passage.begin : passage.end] for passage in (first, second))
        return np.concatenate((begin, one, end, other, end)), len(one) + 2, int(holds)


class Passages(Sequence[PassageBatch]):
    """Rows of about the same length stand side by side, so that there is little padding."""

    def __init__(self, maker: PassageMaker, stream: np.ndarray, seed: int, epoch: int | None) -> None:
        self._maker, self._stream, self._seed, self._epoch = maker, stream, seed, epoch or 0
        random = keyed(seed, self._epoch)
        self._documents = maker.documents(stream)
        spans = maker.spans(self._documents, None if epoch is None else random)
        if not spans:
            raise UsageError(
                f"a text of {len(stream)} tokens, but a row takes {maker.room}: give more text, or a smaller "
                "data.window"
            )
        self._batches = batches_of(spans, maker.spec.rows, None if epoch is None else random)
        padded = sum(len(batch) * max(_length(span) for span in batch) for batch in self._batches)
        self.padding_share = 1 - sum(map(_length, spans)) / padded

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> PassageBatch:  # type: ignore[override]  # one batch at a time
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        random = keyed(self._seed, self._epoch, index)
        return self._maker.batch(self._stream, self._documents, self._batches[index], random)


def batches_of(spans: Sequence[Span], rows: int, random: np.random.Generator | None) -> list[list[Span]]:
    """So many rows each; in random order, and yet those of about the same length together."""
    order = np.arange(len(spans)) if random is None else random.permutation(len(spans))
    pool = rows * _POOLED
    batches = list[list[Span]]()
    for begin in range(0, len(order), pool):
        alike = sorted(order[begin : begin + pool].tolist(), key=lambda number: _length(spans[number]))
        batches += [
            [spans[number] for number in alike[cut : cut + rows]] for cut in range(0, len(alike), rows)
        ]
    if random is None:
        return batches
    return [batches[number] for number in random.permutation(len(batches))]


def _length(span: Span) -> int:
    return span.end - span.begin


def begins_word(tokenizer: Tokenizer) -> np.ndarray:
    """Of every token, whether a word begins with it."""
    found = np.zeros(tokenizer.size, dtype=bool)
    pieces = tokenizer.vocabulary()
    continued = any(piece.startswith(CONTINUED) and len(piece) > len(CONTINUED) for piece in pieces)
    for piece, number in pieces.items():
        spaced = piece.startswith((SPACE, "Ġ", " "))
        found[number] = not piece.startswith(CONTINUED) if continued else spaced
    return found
