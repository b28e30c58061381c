"""Texts, or pairs of texts, each with a class or a number: what a classifier learns from."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from regard.core.errors import DataError
from regard.data.data import DataSpec
from regard.data.examples import Example, Examples, PreparedExamples, report_of
from regard.data.formats import Record
from regard.data.holding_out import held_out, parted
from regard.data.hub import HubRecords, hub_splits, is_hub_name
from regard.data.labels import Labels
from regard.data.layouts import LayoutSpec, Reading
from regard.data.letters import WHOLE_WORDS, words_of
from regard.data.lexicon import Lexicon
from regard.data.origins import Given, origin_of
from regard.data.places import to_be_judged_on, to_learn_from
from regard.data.readers import ReadReport, full_records, read_records
from regard.data.tokenizers import Tokenizer, TokenizerSpec

BETWEEN = "\t"
"""Between the texts of a pair where both are given as one line."""


class LabelledSpec(DataSpec):
    """How labelled texts become batches."""

    fields: ClassVar[tuple[str, ...]] = ("text",)
    labels: ClassVar[tuple[str, ...]] = ("label",)

    texts: Literal[1, 2] = 1
    """Texts of an example: one, or two that are compared."""
    wanted: Literal["class", "number"] = "class"
    """What the label is."""
    columns: tuple[str, ...] = ()
    """Names of the columns of a table without a header, such as [label, text]; "-" is passed over."""
    tokenizer: TokenizerSpec = TokenizerSpec()
    letters: bool = False
    """Give the model the letters of every word, too."""
    layout: LayoutSpec = LayoutSpec()
    both_orders: bool = False
    """Read a pair also the other way round: for what has no order (Radford et al. 2018 §3.3)."""
    batch_tokens: int = Field(default=1024, ge=1)
    """Most tokens of a batch, padding counted."""
    longest: int = Field(default=256, ge=4, le=32_000)
    """Most tokens of an example, marks counted; longer ones are cut and reported."""
    held_out: float = Field(default=0.1, ge=0.0, le=0.5)
    """Share of the rows kept for validation when no validation data is given."""
    held_out_most: int = Field(default=2000, ge=1)
    """Most rows kept for validation that way."""

    @model_validator(mode="after")
    def _possible(self) -> "LabelledSpec":
        if self.longest > self.batch_tokens:
            raise ValueError(f"longest={self.longest} does not fit into batch_tokens={self.batch_tokens}")
        if self.letters and self.tokenizer.unit not in WHOLE_WORDS:
            raise ValueError(f"letters are those of words, but unit={self.tokenizer.unit!r} cuts words: word")
        if self.both_orders and self.texts == 1:
            raise ValueError("both_orders: one text alone has only one")
        return self

    @property
    def record_fields(self) -> tuple[str, ...]:
        return ("text", "label") if self.texts == 1 else ("first", "second", "label")

    def prepare(
        self,
        train: Given,
        valid: Given | None,
        seed: int,
        known: Lexicon | None,
        cache: Path | None,
    ) -> PreparedExamples:
        started = time.perf_counter()
        origin = origin_of(train, self.record_fields, self.columns)
        other = None if valid is None else origin_of(valid, self.record_fields, self.columns)
        prints = (origin.fingerprint(), "held out" if other is None else other.fingerprint())
        read = ReadReport()
        rows = list(full_records(origin, read))
        if other is None:
            kept = held_out(map(self.text_of, rows), self.held_out, self.held_out_most, seed)
            rows, judged = parted(rows, kept)
        else:
            judged = list(full_records(other, ReadReport()))
        if not rows:
            raise DataError("there is no example to train on", file=origin.name)
        lexicon = self._lexicon(rows, judged if other is None else [], known)
        encoded, kept_back = (self._encoded(some, lexicon) for some in (rows, judged))
        seconds = time.perf_counter() - started
        report = report_of(origin.name, lexicon, encoded, kept_back, self.longest, read.empty, seconds)
        fingerprint = hashlib.sha256("\n".join(prints).encode()).hexdigest()
        return PreparedExamples(lexicon, encoded, kept_back, self.batch_tokens, seed, fingerprint, report)

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        if is_hub_name(data):
            hub = hub_splits(data)
            return hub["train"], hub["valid"] if valid is None else valid
        return to_learn_from(data, valid)

    def records(self, data: str) -> list[tuple[str, ...]]:
        """The text, or both with a tab between them, and the label."""
        return [(self.text_of(record), record.fields["label"]) for record in self._judged_on(data)]

    def text_of(self, record: Record) -> str:
        return BETWEEN.join(record.fields[field] for field in self.record_fields[:-1])

    def readings(self, tokenizer: Tokenizer, texts: Sequence[str], first_line: int = 1) -> list[Reading]:
        """As a model reads them, pairs in their own order."""
        return [rows[0] for rows in self.rows_of(tokenizer, texts, first_line)]

    def rows_of(
        self, tokenizer: Tokenizer, texts: Sequence[str], first_line: int = 1
    ) -> list[tuple[Reading, ...]]:
        """Everything that is read of each."""
        parts = [self._parts(text, line) for line, text in enumerate(texts, start=first_line)]
        rows = iter(tokenizer.encode_many([part for some in parts for part in some]))
        found = []
        for some in parts:
            own = [next(rows) for _ in some]
            words = [words_of(tokenizer, part) for part in some] if self.letters else None
            orders = ((own, words), (own[::-1], words and words[::-1]))[: 1 + self.both_orders]
            found.append(tuple(self._laid(tokenizer, *order) for order in orders))
        return found

    def _laid(self, tokenizer: Tokenizer, ids: list[list[int]], words: list[list[str]] | None) -> Reading:
        reading = self.layout.lay(tokenizer, ids, self.longest)
        return (
            reading if words is None else reading._replace(words=self.layout.lay_words(words, self.longest))
        )

    def _parts(self, text: str, line: int) -> list[str]:
        if self.texts == 1:
            return [text]
        parts = text.split(BETWEEN)
        if len(parts) != self.texts:
            raise DataError(
                f"expected {self.texts} texts with a tab between them, found {len(parts)}", line=line
            )
        return parts

    def _judged_on(self, data: str) -> list[Record]:
        if is_hub_name(data):
            hub = hub_splits(data)
            return list(HubRecords(hub["test"] or hub["valid"] or data, self.record_fields))
        return list(read_records(to_be_judged_on(data), self.record_fields, columns=self.columns))

    def _lexicon(self, rows: list[Record], held: list[Record], known: Lexicon | None) -> Lexicon:
        labels = {} if known is None else known.labels
        if self.wanted == "class" and not labels:
            # A class so rare that all of it was held out is a class.
            labels = {"label": Labels.learn(record.fields["label"] for record in (*rows, *held))}
        if known is not None:
            return Lexicon({"text": known["text"].with_tokens(self.layout.new_tokens)}, labels)
        texts = [record.fields[field] for record in rows for field in self.record_fields[:-1]]
        learned = Tokenizer.train(self.tokenizer, texts)
        return Lexicon({"text": learned.with_tokens(self.layout.new_tokens)}, labels)

    def _encoded(self, rows: list[Record], lexicon: Lexicon) -> Examples:
        texts = [self.text_of(record) for record in rows]
        readings = self.rows_of(lexicon["text"], texts)
        encoded = [
            Example(own, [self._value(record, lexicon)]) for own, record in zip(readings, rows, strict=True)
        ]
        return Examples(
            encoded, [(text, record.fields["label"]) for text, record in zip(texts, rows, strict=True)]
        )

    def _value(self, record: Record, lexicon: Lexicon) -> int | float:
        label = record.fields["label"]
        if self.wanted == "class":
            return lexicon.labels["label"].number(label, record.file, record.line)
        return number_of(label, record.file, record.line)


def number_of(text: str, file: str | None = None, line: int | None = None) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise DataError(f"expected a number, found {text!r}", file=file, line=line, field="label")
    return value
