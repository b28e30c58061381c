"""Passages of text with some tokens hidden, alone or two by two: what a reader learns from that guesses.

[begin] a [end], or [begin] a [end] b [end] where b follows a, or is from elsewhere (Devlin et al. 2019 §3.1).
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from pydantic import model_validator
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.sequences import Places, Tokens
from regard.data.documents import GivenText
from regard.data.hiding import HidingSpec
from regard.data.lexicon import Lexicon
from regard.data.randomness import keyed
from regard.data.text import PreparedText, TextPlan, TextReport
from regard.data.tokenizers import Tokenizer
from regard.data.units import CONTINUED, SPACE

_FEWEST_TOKENS = 512
_JUDGED = 0x5EED
"""Where validation draws what it hides: always the same."""


class PassagesSpec(TextPlan):
    """How text becomes passages to guess in. A ``window`` is a row, marks counted."""

    hiding: HidingSpec = HidingSpec()
    pairs: bool = False
    """Two passages a row, of which the second follows the first in half of all rows."""

    @model_validator(mode="after")
    def _possible(self) -> "PassagesSpec":
        least = 3 + 4 * self.pairs
        if self.window < least:
            raise ValueError(f"window={self.window}, but a row needs at least {least} tokens, marks counted")
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
    """1 where the second passage follows the first; None: there is no second."""
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
        return blanked(self._text.examples(most), self.lexicon["text"])

    def close(self) -> None:
        """Nothing is prepared ahead of time."""


class PassageMaker:
    """Turns places in a text into rows with hidden tokens."""

    def __init__(self, spec: PassagesSpec, tokenizer: Tokenizer) -> None:
        self.spec, self.marks = spec, tokenizer.marks
        assert self.marks.hidden is not None
        self.room = spec.window - (3 if spec.pairs else 2)
        special = np.zeros(tokenizer.size, dtype=bool)
        special[[mark for mark in self.marks if mark is not None]] = True
        self._special, self._others = special, np.flatnonzero(~special)
        self._begins = begins_word(tokenizer)

    def batch(self, stream: np.ndarray, starts: np.ndarray, random: np.random.Generator) -> PassageBatch:
        rows = [self._row(stream, int(start), random) for start in starts]
        ids = np.stack([row for row, _, _ in rows])
        hidden = self.spec.hiding.hide(
            ids, ~self._special[ids], self._begins[ids], self.marks.hidden or 0, self._others, random
        )
        places = [np.flatnonzero(asked) for asked in hidden.asked]
        wanted = Tokens.pad([row[at] for row, at in zip(ids, places, strict=True)], 0).ids
        tokens, follows = Tokens.whole(torch.from_numpy(hidden.shown.astype(np.int64))), None
        if self.spec.pairs:
            second = torch.tensor([begin for _, begin, _ in rows])
            time = torch.arange(ids.shape[1])
            tokens = tokens._replace(segments=(time >= second[:, None]).long())
            follows = torch.tensor([[label] for _, _, label in rows])
        return PassageBatch(tokens, Places.pad(places), wanted, follows, starts)

    def _row(
        self, stream: np.ndarray, start: int, random: np.random.Generator
    ) -> tuple[np.ndarray, int, int]:
        """The row, where its second passage begins, and whether that follows the first."""
        begin, end = self.marks.begin, self.marks.end
        if not self.spec.pairs:
            return np.concatenate(([begin], stream[start : start + self.room], [end])), self.spec.window, 0
        cut = int(random.integers(self.room // 4, self.room - self.room // 4 + 1)) if self.room >= 4 else 1
        follows = int(random.random() < 0.5)
        other = start + cut if follows else int(random.integers(0, len(stream) - self.room + 1))
        first, second = stream[start : start + cut], stream[other : other + self.room - cut]
        return np.concatenate(([begin], first, [end], second, [end])), cut + 2, follows


class Passages(Sequence[PassageBatch]):
    padding_share = 0.0

    def __init__(self, maker: PassageMaker, stream: np.ndarray, seed: int, epoch: int | None) -> None:
        self._maker, self._stream, self._seed, self._epoch = maker, stream, seed, epoch or 0
        room, rows = maker.room, maker.spec.rows
        if len(stream) < room:
            raise UsageError(
                f"a text of {len(stream)} tokens, but a row takes {room}: give more text, or a smaller "
                "data.window"
            )
        random = keyed(seed, self._epoch)
        first = 0 if epoch is None else int(random.integers(0, len(stream) % room + 1))
        starts = np.arange(first, len(stream) - room + 1, room)
        starts = starts if epoch is None else random.permutation(starts)
        self._starts = [starts[cut : cut + rows] for cut in range(0, len(starts), rows)]

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> PassageBatch:  # type: ignore[override]  # one batch at a time
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        random = keyed(self._seed, self._epoch, index)
        return self._maker.batch(self._stream, self._starts[index], random)


def begins_word(tokenizer: Tokenizer) -> np.ndarray:
    """Of every token, whether a word begins with it."""
    found = np.zeros(tokenizer.size, dtype=bool)
    pieces = tokenizer.vocabulary()
    continued = any(piece.startswith(CONTINUED) and len(piece) > len(CONTINUED) for piece in pieces)
    for piece, number in pieces.items():
        spaced = piece.startswith((SPACE, "Ġ", " "))
        found[number] = not piece.startswith(CONTINUED) if continued else spaced
    return found


def blanked(examples: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """The last word of each first half, hidden; what follows stays in sight."""
    found = []
    for before, after in examples:
        words = before.split()
        if len(words) > 1:
            found.append((" ".join([*words[:-1], "___", after]), words[-1]))
    return found
