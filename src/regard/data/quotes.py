"""Questions about a text whose answers are quoted from it, or are not in it.

As a line of text a question comes first, then a tab, then the text that is read for it. Answers are slices of
that text to the character. One too long for a row is read in several that overlap, each behind the question.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import Field, model_validator

from regard.core.errors import DataError
from regard.data.data import DataSpec
from regard.data.examples import Example, Examples, PreparedExamples, report_of
from regard.data.given import fingerprint_of, name_of
from regard.data.holding_out import held_out, parted
from regard.data.labels import Labels
from regard.data.layouts import LayoutSpec, Reading
from regard.data.letters import WHOLE_WORDS, words_of
from regard.data.lexicon import Lexicon
from regard.data.places import to_be_judged_on, to_learn_from
from regard.data.quote_files import BETWEEN, Place, Question, located, questions_of, read_questions
from regard.data.tokenizers import Tokenizer, TokenizerSpec

QUOTE, NOTHING = "quote", "nothing"
"""Kinds of answers: what is quoted, and that there is nothing to quote."""
GivenQuotes: TypeAlias = str | Path | Sequence[str | Path] | Iterable[tuple[str, ...]]
"""A file; or questions as they are: question and text with a tab between, and answers with tabs between."""


class Window(NamedTuple):
    """A part of a text as it is read behind its question."""

    reading: Reading
    """Places: where nothing is answered, then every token of the part."""
    first: int
    """Which token of the text is its first."""


class Windows(NamedTuple):
    """A text in its parts, and where in it every token stands."""

    parts: list[Window]
    offsets: list[tuple[int, int]]


class QuotesSpec(DataSpec):
    """How questions about texts become batches."""

    fields: ClassVar[tuple[str, ...]] = ("text",)
    labels: ClassVar[tuple[str, ...]] = ("kind",)

    columns: tuple[str, ...] = ()
    """Names of the columns of a table without a header: context, question, answer, and start if there is one;
    "-" is passed over."""
    tokenizer: TokenizerSpec = TokenizerSpec()
    letters: bool = False
    """Give the model the letters of every word, too."""
    layout: LayoutSpec = LayoutSpec()
    matches: bool = False
    """Mark the tokens of a text that its question has, too, as a third segment (Chen et al. 2017 §3.2)."""
    nothing_at: Literal["first", "last"] = "first"
    """The token of a row at which it is said that it holds no answer."""
    longest: int = Field(default=320, ge=16, le=32_000)
    """Most tokens of a row, marks and question counted."""
    longest_question: int = Field(default=64, ge=1)
    """Most tokens of a question; longer ones are cut."""
    stride: int = Field(default=128, ge=1)
    """Tokens between the beginnings of two windows of one text."""
    batch_tokens: int = Field(default=2048, ge=1)
    """Most tokens of a batch, padding counted."""
    held_out: float = Field(default=0.1, ge=0.0, le=0.5)
    """Share of the texts kept for validation, with all their questions, when no validation data is given."""
    held_out_most: int = Field(default=1000, ge=1)
    """Most questions kept for validation that way."""

    @model_validator(mode="after")
    def _possible(self) -> "QuotesSpec":
        if self.longest > self.batch_tokens:
            raise ValueError(f"longest={self.longest} does not fit into batch_tokens={self.batch_tokens}")
        if self.letters and self.tokenizer.unit not in WHOLE_WORDS:
            raise ValueError(f"letters are those of words, but unit={self.tokenizer.unit!r} cuts words: word")
        if self.layout.room(2, self.longest) <= self.longest_question:
            raise ValueError(
                f"a question of longest_question={self.longest_question} tokens leaves no room for a text in "
                f"a row of longest={self.longest}"
            )
        return self

    def prepare(
        self,
        train: GivenQuotes,
        valid: GivenQuotes | None,
        seed: int,
        known: Lexicon | None,
        cache: Path | None,
    ) -> PreparedExamples:
        started = time.perf_counter()
        rows = self.questions(train)
        if valid is None:
            kept = held_out((row.context for row in rows), self.held_out, self.held_out_most, seed)
            rows, judged = parted(rows, kept)
        else:
            judged = self.questions(valid)
        if not rows:
            raise DataError("there is no question to train on", file=name_of(train, "given questions"))
        lexicon = self._lexicon(rows, judged, known)
        encoded, kept_back = (self._encoded(some, lexicon["text"]) for some in (rows, judged))
        seconds = time.perf_counter() - started
        report = report_of(
            name_of(train, "given questions"), lexicon, encoded, kept_back, self.longest, 0, seconds
        )
        report = report._replace(examples=len(rows), validation=len(judged), classes=0)
        fingerprint = fingerprint_of(*([(repr(row[:3]),) for row in some] for some in (rows, judged)))
        return PreparedExamples(lexicon, encoded, kept_back, self.batch_tokens, seed, fingerprint, report)

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        return to_learn_from(data, valid)

    def records(self, data: str) -> list[tuple[str, ...]]:
        """Question and text with a tab between them; every right answer with tabs between."""
        return [(row.source, row.target) for row in self.questions(to_be_judged_on(data))]

    def questions(self, given: GivenQuotes) -> list[Question]:
        if isinstance(given, str | Path):
            given = (given,)
        found = list[Question]()
        for line, row in enumerate(given, start=1):
            if isinstance(row, str | Path):
                found += read_questions(row, self.columns)
                continue
            question, context = self.parted(row[0], line)
            place = Place("given questions", line)
            texts = [text for text in row[1].split(BETWEEN) if text]
            found.append(Question(question, context, tuple(located(context, t, None, place) for t in texts)))
        return found

    def parted(self, text: str, line: int) -> tuple[str, str]:
        """A question and what is read for it, of a line or of a JSON object."""
        if text.lstrip().startswith("{"):
            with suppress(json.JSONDecodeError):  # a text may begin like that
                asked = next(questions_of(json.loads(text), Place("", line)))
                return asked.question, asked.context
        question, tab, context = text.partition(BETWEEN)
        if not tab or not context.strip():
            raise DataError("expected a question, a tab, and the text that is read for it", line=line)
        return question, context

    def windows_of(self, tokenizer: Tokenizer, asked: Sequence[tuple[str, str]]) -> list[Windows]:
        """Every text in as many rows as it needs."""
        texts = list(dict.fromkeys(text for pair in asked for text in pair))
        ids = dict(zip(texts, tokenizer.encode_many(texts), strict=True))
        offsets = {
            context: [_trimmed(context, *span) for span in tokenizer.offsets(context)]
            for context in dict.fromkeys(context for _, context in asked)
        }
        words = {text: words_of(tokenizer, text) for text in texts} if self.letters else {}
        found = []
        for question, context in asked:
            parts = list(self._parts(tokenizer, ids[question], ids[context]))
            if self.letters:
                parts = [self._spelled(part, words[question], words[context]) for part in parts]
            found.append(Windows(parts, offsets[context]))
        return found

    def _spelled(self, part: Window, question: list[str], context: list[str]) -> Window:
        held = context[part.first : part.first + len(part.reading.places) - 1]
        words = self.layout.lay_words([question[: self.longest_question], held], self.longest)
        return part._replace(reading=part.reading._replace(words=words))

    def _parts(self, tokenizer: Tokenizer, question: list[int], context: list[int]) -> Iterator[Window]:
        question = question[: self.longest_question]
        room, first, known = self.layout.room(2, self.longest) - len(question), 0, set(question)
        while True:
            part = context[first : first + room]
            reading = self.layout.lay(tokenizer, [question, part], self.longest)
            places = range(reading.second, reading.second + len(part))
            nothing = 0 if self.nothing_at == "first" else len(reading.ids) - 1
            reading = reading._replace(places=[nothing, *places])
            if self.matches:
                segments = [0] * reading.second + [1 + (token in known) for token in part]
                reading = reading._replace(segments=(*segments, 1))
            yield Window(reading, first)
            if first + room >= len(context):
                return
            first += min(self.stride, room)

    def _lexicon(self, rows: list[Question], judged: list[Question], known: Lexicon | None) -> Lexicon:
        labels = {} if known is None else known.labels
        if not labels:
            found = (QUOTE if row.quotes else NOTHING for row in (*rows, *judged))
            labels = {"kind": Labels.learn((QUOTE, *found))}
        if known is not None:
            tokenizer = known["text"]
        else:
            texts = dict.fromkeys(text for row in rows for text in (row.question, row.context))
            tokenizer = Tokenizer.train(self.tokenizer, list(texts))
        return Lexicon({"text": tokenizer.with_tokens(self.layout.new_tokens)}, labels)

    def _encoded(self, rows: Sequence[Question], tokenizer: Tokenizer) -> Examples:
        windows = self.windows_of(tokenizer, [(row.question, row.context) for row in rows])
        encoded = [
            Example((part.reading,), _wanted(row, part, own.offsets))
            for row, own in zip(rows, windows, strict=True)
            for part in own.parts
        ]
        return Examples(encoded, [(row.source, row.target) for row in rows])


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    """Without blanks at its ends, which belong to no quote; a token of blanks alone stands for nothing."""
    bare = text[begin:end].strip()
    first = text.index(bare, begin) if bare else begin
    return first, first + len(bare)


def _wanted(row: Question, part: Window, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """The places of the first and the last token of the answer; that of nothing if it is not whole here."""
    if not row.quotes:
        return [0, 0]
    begin, end = row.quotes[0].begin, row.quotes[0].begin + len(row.quotes[0].text)
    held = len(part.reading.places) - 1
    inside = [
        number
        for number, (first, last) in enumerate(offsets)
        if first < end and last > begin and first < last
    ]
    if not inside or inside[0] < part.first or inside[-1] >= part.first + held:
        return [0, 0]
    return [inside[0] - part.first + 1, inside[-1] - part.first + 1]
