"""Questions about a text whose answers are quoted from it, or are not in it.

As a line of text a question comes first, then a tab, then the text that is read for it. Answers are slices of
that text to the character. One too long for a row is read in several that overlap, each behind the question.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import Field, model_validator

from regard.core.errors import DataError, nearest
from regard.data.data import DataSpec
from regard.data.examples import Example, Examples, PreparedExamples, report_of
from regard.data.given import fingerprint_of, name_of
from regard.data.holding_out import held_out, parted
from regard.data.json_items import json_items, kind_of, parse_json, text_of
from regard.data.labels import Labels
from regard.data.layouts import LayoutSpec, Reading
from regard.data.letters import WHOLE_WORDS, words_of
from regard.data.lexicon import Lexicon
from regard.data.lines import read_lines, shown
from regard.data.places import ending, to_be_judged_on, to_learn_from
from regard.data.tables import table_rows
from regard.data.tokenizers import Tokenizer, TokenizerSpec

BETWEEN = "\t"
QUOTE, NOTHING = "quote", "nothing"
"""Kinds of answers: what is quoted, and that there is nothing to quote."""
KEYS: dict[str, tuple[str, ...]] = {
    "context": ("context", "text", "passage", "document"),
    "question": ("question", "query"),
    "answer": ("answer", "answers"),
    "start": ("start", "answer_start", "begin"),
}
"""Names that keys and columns go by, the first that is there counts."""

GivenQuotes: TypeAlias = str | Path | Sequence[str | Path] | Iterable[tuple[str, ...]]
"""A file; or questions as they are: question and text with a tab between, and answers with tabs between."""


class Quote(NamedTuple):
    begin: int
    text: str


class Question(NamedTuple):
    question: str
    context: str
    quotes: tuple[Quote, ...]
    """Every answer that counts as right; none where the text does not answer."""
    name: str = ""

    @property
    def source(self) -> str:
        return f"{_one_line(self.question)}{BETWEEN}{self.context}"

    @property
    def target(self) -> str:
        return BETWEEN.join(dict.fromkeys(_one_line(quote.text) for quote in self.quotes))


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
                found += _from_file(row, self.columns)
                continue
            question, context = self.parted(row[0], line)
            place = _Place("given questions", line)
            texts = [text for text in row[1].split(BETWEEN) if text]
            found.append(Question(question, context, tuple(_located(context, t, None, place) for t in texts)))
        return found

    def parted(self, text: str, line: int) -> tuple[str, str]:
        """A question and what is read for it, of a line or of a JSON object."""
        if text.lstrip().startswith("{"):
            with suppress(json.JSONDecodeError):  # a text may begin like that
                asked = next(_questions(json.loads(text), _Place("", line)))
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


class _Place(NamedTuple):
    file: str
    line: int | None
    name: str = ""

    def complaint(self, said: str) -> DataError:
        return DataError(said, file=self.file or None, line=self.line, field=self.name or None)


def _from_file(path: str | Path, columns: Sequence[str]) -> Iterator[Question]:
    name, kind = shown(path), ending(path)
    found = 0
    for question in _read(path, name, kind, columns):
        found += 1
        yield question
    if not found:
        raise DataError("there is no question in the file", file=name)


def _read(path: str | Path, name: str, kind: str, columns: Sequence[str]) -> Iterator[Question]:
    if kind == "json":
        whole = parse_json("\n".join(line.text for line in read_lines(path)), name, None)
        for number, item in enumerate(whole if isinstance(whole, list) else [whole], start=1):
            yield from _questions(item, _Place(name, number if isinstance(whole, list) else None))
    elif kind == "jsonl":
        for line, item in json_items(read_lines(path), name):
            yield from _questions(item, _Place(name, line))
    else:
        yield from _from_table(path, name, kind == "csv", columns)


def _from_table(path: str | Path, name: str, quoted: bool, columns: Sequence[str]) -> Iterator[Question]:
    for line, cells in table_rows(path, quoted):
        if not columns:
            columns = [cell.strip().lower() for cell in cells]
            if not any(alias in columns for alias in KEYS["question"]):
                said = "expected a header with context, question and answer, or data.columns that names them"
                raise DataError(said, file=name, line=line)
            continue
        if len(cells) != len(columns):
            said = f"expected {len(columns)} columns ({', '.join(columns)}), found {len(cells)}"
            raise DataError(said, file=name, line=line)
        item = dict(zip(columns, cells, strict=True))
        start = next((key for key in KEYS["start"] if key in item), None)
        if start is not None:
            said = item.pop(start).strip()
            if said and not said.isdigit():
                raise DataError(f"expected a number, found {said!r}", file=name, line=line, field=start)
            item["start"] = said
        values: dict[str, Any] = {k: v for k, v in item.items() if k != "start"}
        if item.get("start"):
            values["start"] = int(item["start"])
        yield from _questions(values, _Place(name, line))


def _questions(item: Any, place: _Place) -> Iterator[Question]:
    """Of SQuAD's whole file, of one of its articles or paragraphs, or of one question beside its text."""
    if not isinstance(item, Mapping):
        raise place.complaint(f"expected an object with 'context' and 'question', got {kind_of(item)}")
    for inner in ("data", "paragraphs"):
        if isinstance(item.get(inner), list):
            for part in item[inner]:
                yield from _questions(part, place)
            return
    context = _text(item, "context", place)
    if isinstance(item.get("qas"), list):
        for asked in item["qas"]:
            named = place._replace(name=f"question {asked['id']}") if "id" in asked else place
            yield _question(asked, context, named)
    else:
        yield _question(item, context, place)


def _question(item: Mapping[str, Any], context: str, place: _Place) -> Question:
    question = _text(item, "question", place)
    if not context.strip():
        raise place.complaint("the text that is read for it is empty")
    name = text_of(item.get("id", ""), "id", place.file, place.line)
    if item.get("is_impossible"):
        return Question(question, context, (), name)
    key = next((key for key in KEYS["answer"] if key in item), None)
    start = next((item[key] for key in KEYS["start"] if key in item), None)
    pairs = _pairs(None if key is None else item[key], start, place)
    return Question(question, context, tuple(_located(context, *pair, place) for pair in pairs), name)


def _pairs(given: Any, start: Any, place: _Place) -> list[tuple[str, int | None]]:
    """Answers in whatever form, each with where it begins, if that is said."""
    if given is None or given == "" or given == []:
        return []
    if isinstance(given, str):
        return [(given, start if isinstance(start, int) else None)]
    if isinstance(given, Mapping):  # the columns of the Hugging Face hub
        texts, starts = given.get("text", []), given.get("answer_start", [])
        return list(zip(texts, starts or [None] * len(texts), strict=True))
    found = list[tuple[str, int | None]]()
    for one in given:
        if isinstance(one, Mapping) and "text" in one:
            found.append((one["text"], one.get("answer_start")))
        elif isinstance(one, list) and len(one) == 2:
            found.append((one[1], one[0]))
        elif isinstance(one, str):
            found.append((one, None))
        else:
            raise place.complaint(f"expected an answer with 'text' and 'answer_start', got {kind_of(one)}")
    return found


def _located(context: str, text: str, begin: int | None, place: _Place) -> Quote:
    """An answer is what stands there, or it is refused."""
    if begin is None:
        begin = context.find(text)
        if begin < 0:
            raise place.complaint(f"the answer {text!r:.60} is not in the text")
    there = context[begin : begin + len(text)]
    if there != text or not text.strip():
        elsewhere = context.find(text) if text.strip() else -1
        hint = f"; it is at {elsewhere}" if elsewhere >= 0 else ""
        raise place.complaint(
            f"the answer {text!r:.60} is said to begin at {begin}, where {there!r:.60} is{hint}"
        )
    return Quote(begin, text)


def _text(item: Mapping[str, Any], field: str, place: _Place) -> str:
    key = next((key for key in KEYS[field] if key in item), None)
    if key is None:
        raise place.complaint(f"there is no {field!r}{nearest(field, map(str, item))}")
    return text_of(item[key], key, place.file, place.line)


def _one_line(text: str) -> str:
    return " ".join(text.split())
