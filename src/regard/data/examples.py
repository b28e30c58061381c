"""Examples that are read and judged: rows of tokens with what is wanted of each, all in memory."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.sequences import Places, Tokens
from regard.core.spec import Plain
from regard.data.batches import BatchPlan, evaluation_batches, plan_epoch
from regard.data.layouts import Reading
from regard.data.lexicon import Lexicon
from regard.parts.spelling import spelled

_FEWEST_TOKENS = 512


class Example(NamedTuple):
    """One row, or several to choose among, and what is wanted."""

    readings: tuple[Reading, ...]
    wanted: Sequence[int] | Sequence[float]
    """One value for the whole, or one for each place asked about."""

    @property
    def tokens(self) -> int:
        return len(self.readings) * max(len(reading.ids) for reading in self.readings)


class ExampleBatch(NamedTuple):
    """``alternatives`` rows of tokens for every row of what is wanted."""

    tokens: Tokens
    places: Places | None
    wanted: Int[Tensor, "examples asked"] | Float[Tensor, "examples asked"]
    rows: np.ndarray
    alternatives: int = 1

    def to(self, device: torch.device | str) -> "ExampleBatch":
        places = None if self.places is None else self.places.to(device)
        return ExampleBatch(
            self.tokens.to(device), places, self.wanted.to(device), self.rows, self.alternatives
        )

    def split(self, parts: int) -> list["ExampleBatch"]:
        """At most so many batches of consecutive examples, none too small to be worth a thread."""
        parts = max(1, min(parts, len(self.rows), self.tokens.ids.numel() // _FEWEST_TOKENS))
        bounds = [len(self.rows) * part // parts for part in range(parts + 1)]
        return [self._between(begin, end) for begin, end in pairwise(bounds)] if parts > 1 else [self]

    def _between(self, begin: int, end: int) -> "ExampleBatch":
        first, last = begin * self.alternatives, end * self.alternatives
        places = None if self.places is None else self.places.between(first, last)
        wanted = self.wanted[begin:end]
        if places is not None and places.at.shape[1] < wanted.shape[1]:
            wanted = wanted[:, : places.at.shape[1]]
        return ExampleBatch(
            self.tokens.between(first, last), places, wanted, self.rows[begin:end], self.alternatives
        )


def batch_of(examples: Sequence[Example], rows: np.ndarray, padding: int) -> ExampleBatch:
    most = max(len(example.readings) for example in examples)
    # Who has fewer rows to choose among than others has its first again; its head knows how many count.
    readings = [
        reading
        for example in examples
        for reading in (*example.readings, *example.readings[:1] * (most - len(example.readings)))
    ]
    wanted = [np.asarray(example.wanted) for example in examples]
    filled = np.zeros((len(wanted), max(map(len, wanted))), dtype=np.result_type(*wanted))
    for row, values in zip(filled, wanted, strict=True):
        row[: len(values)] = values
    kind = torch.float32 if filled.dtype.kind == "f" else torch.long
    asked = any(reading.places for reading in readings)
    return ExampleBatch(
        tokens_of(readings, padding),
        Places.pad([reading.places for reading in readings]) if asked else None,
        torch.from_numpy(filled).to(kind),
        rows,
        most,
    )


def tokens_of(readings: Sequence[Reading], padding: int) -> Tokens:
    """Rows side by side, each token with the number of its text where some have two."""
    tokens = Tokens.pad([reading.ids for reading in readings], padding)
    if any(reading.words for reading in readings):
        tokens = tokens._replace(letters=_letters(readings, tokens.ids.shape[1]))
    if any(reading.segments for reading in readings):
        return tokens._replace(segments=Tokens.pad([reading.segments for reading in readings], 0).ids)
    second = torch.tensor([reading.second for reading in readings])
    if bool((second >= tokens.real.sum(1)).all()):
        return tokens
    time = torch.arange(tokens.ids.shape[1])
    return tokens._replace(segments=((time >= second[:, None]) & tokens.real).long())


def _letters(readings: Sequence[Reading], time: int) -> Int[Tensor, "batch time letters"]:
    rows = [(*reading.words, *[""] * (time - len(reading.words))) for reading in readings]
    letters = torch.from_numpy(spelled([word for row in rows for word in row]))
    return letters.view(len(readings), time, -1)


class ExampleBatches(Sequence[ExampleBatch]):
    def __init__(self, plan: BatchPlan, examples: Sequence[Example], padding: int) -> None:
        self._plan, self._examples, self._padding = plan, examples, padding
        self.padding_share = plan.padding_share

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, index: int) -> ExampleBatch:  # type: ignore[override]  # one batch at a time
        rows = self._plan[index]
        return batch_of([self._examples[row] for row in rows], rows, self._padding)


class ExamplesReport(NamedTuple):
    """What became of the data."""

    data: str
    examples: int
    tokens: int
    unknown: float
    """Share of the training tokens that are unknown."""
    vocabulary: int
    classes: int
    cut: int
    """Training examples that were longer than a row may be."""
    longest: int
    validation: int
    left_out: int
    """Rows with an empty field."""
    seconds: float

    def summary(self) -> list[str]:
        classes = f", {self.classes:,} classes" if self.classes else ""
        unknown = f", {self.unknown:.2%} unknown" if self.unknown else ""
        said = [
            f"{self.examples:,} examples and {self.validation:,} for validation{classes}, "
            f"{self.tokens:,} tokens, vocabulary {self.vocabulary:,}{unknown}, {self.seconds:.1f} s"
        ]
        if self.cut:
            said.append(f"{self.cut:,} examples were cut to longest={self.longest} tokens")
        if self.left_out:
            said.append(f"{self.left_out:,} rows with an empty field were left out")
        return said

    def facts(self) -> dict[str, Plain]:
        return self._asdict()


class Examples(NamedTuple):
    """Encoded examples, and what a person would see of each: what goes in, what should come out."""

    encoded: list[Example]
    shown: list[tuple[str, str]]


class PreparedExamples:
    """Batches of examples that are all in memory."""

    def __init__(
        self,
        lexicon: Lexicon,
        train: Examples,
        valid: Examples,
        batch_tokens: int,
        seed: int,
        fingerprint: str,
        report: ExamplesReport,
    ) -> None:
        self.lexicon, self._train, self._valid = lexicon, train, valid
        self._budget, self._seed = batch_tokens, seed
        self.fingerprint, self.report = fingerprint, report
        self._padding = next(iter(lexicon.values())).pad
        self._lengths, self._valid_lengths = (
            np.array([[example.tokens] for example in part.encoded], dtype=np.int32).reshape(-1, 1)
            for part in (train, valid)
        )

    def epoch(self, number: int) -> ExampleBatches:
        plan = plan_epoch(self._lengths, self._budget, self._seed, number)
        return ExampleBatches(plan, self._train.encoded, self._padding)

    def validation(self) -> ExampleBatches:
        plan = evaluation_batches(self._valid_lengths, self._budget)
        return ExampleBatches(plan, self._valid.encoded, self._padding)

    def examples(self, most: int) -> list[tuple[str, str]]:
        return self._valid.shown[:most]

    def token_counts(self, field: str) -> np.ndarray:
        """How often each token occurs in the training data."""
        counts = np.zeros(self.lexicon[field].size, dtype=np.int64)
        for example in self._train.encoded:
            for reading in example.readings:
                np.add.at(counts, reading.ids, 1)
        return counts

    def close(self) -> None:
        """Nothing is prepared ahead of time."""


def report_of(
    name: str,
    lexicon: Lexicon,
    train: Examples,
    valid: Examples,
    longest: int,
    left_out: int,
    seconds: float,
) -> ExamplesReport:
    readings = [reading for example in train.encoded for reading in example.readings]
    tokenizer = next(iter(lexicon.values()))
    tokens = sum(len(reading.ids) for reading in readings)
    unknown = sum(reading.ids.count(tokenizer.unknown) for reading in readings)
    return ExamplesReport(
        data=name,
        examples=len(train.encoded),
        tokens=tokens,
        unknown=unknown / max(tokens, 1),
        vocabulary=tokenizer.size,
        classes=sum(labels.size for labels in lexicon.labels.values()),
        cut=sum(any(reading.cut for reading in example.readings) for example in train.encoded),
        longest=longest,
        validation=len(valid.encoded),
        left_out=left_out,
        seconds=seconds,
    )
