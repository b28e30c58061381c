"""Sentences with a tag for every word: what a tagger learns from."""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from regard.core.errors import DataError
from regard.data.column_files import ColumnSpec, TaggedSentence, as_one_word, read_tagged, words_of
from regard.data.data import DataSpec
from regard.data.examples import Example, Examples, PreparedExamples, report_of
from regard.data.given import fingerprint_of, name_of
from regard.data.holding_out import held_out, parted
from regard.data.labels import Labels
from regard.data.layouts import LayoutSpec, Reading
from regard.data.lexicon import Lexicon
from regard.data.places import to_be_judged_on, to_learn_from
from regard.data.tag_schemes import Scheme, convert, scheme_of
from regard.data.tokenizers import Tokenizer, TokenizerSpec

GivenTags: TypeAlias = (
    str | Path | Sequence[str | Path] | Iterable[TaggedSentence] | Iterable[tuple[str, ...]]
)
"""A file, or sentences as they are: words and tags, each as a text with blanks between them."""


class TaggedSpec(DataSpec):
    """How tagged sentences become batches."""

    fields: ClassVar[tuple[str, ...]] = ("text",)
    labels: ClassVar[tuple[str, ...]] = ("label",)

    columns: ColumnSpec = ColumnSpec()
    """Where words and tags stand in a column file."""
    scheme: Scheme | None = None
    """Learn, and answer, spans in this scheme whatever the data are in; null: tags as they are."""
    tokenizer: TokenizerSpec = TokenizerSpec(unit="blank", size=30_000)
    letters: bool = False
    """Give the model the letters of every word, too."""
    layout: LayoutSpec = LayoutSpec()
    batch_tokens: int = Field(default=1024, ge=1)
    """Most tokens of a batch, padding counted."""
    longest: int = Field(default=256, ge=4, le=32_000)
    """Most tokens of a row, marks counted; a longer sentence is read in several."""
    held_out: float = Field(default=0.1, ge=0.0, le=0.5)
    """Share of the sentences kept for validation when no validation data is given."""
    held_out_most: int = Field(default=2000, ge=1)
    """Most sentences kept for validation that way."""

    @model_validator(mode="after")
    def _possible(self) -> "TaggedSpec":
        if self.longest > self.batch_tokens:
            raise ValueError(f"longest={self.longest} does not fit into batch_tokens={self.batch_tokens}")
        return self

    def prepare(
        self, train: GivenTags, valid: GivenTags | None, seed: int, known: Lexicon | None, cache: Path | None
    ) -> PreparedExamples:
        started = time.perf_counter()
        rows = self.sentences(train)
        if not rows:
            raise DataError("there is no sentence to train on", file=name_of(train, "given sentences"))
        if valid is None:
            kept = held_out((" ".join(row.words) for row in rows), self.held_out, self.held_out_most, seed)
            rows, judged = parted(rows, kept)
        else:
            judged = self.sentences(valid)
        fingerprint = fingerprint_of(
            *([(*row.words, "\x1e", *row.tags) for row in some] for some in (rows, judged))
        )
        lexicon = self._lexicon(rows, judged, known)
        encoded, kept_back = (self._encoded(some, lexicon) for some in (rows, judged))
        seconds = time.perf_counter() - started
        report = report_of(
            name_of(train, "given sentences"), lexicon, encoded, kept_back, self.longest, 0, seconds
        )
        return PreparedExamples(lexicon, encoded, kept_back, self.batch_tokens, seed, fingerprint, report)

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        return to_learn_from(data, valid)

    def records(self, data: str) -> list[tuple[str, ...]]:
        """The words, and the tags, with blanks between them."""
        return [(" ".join(row.words), " ".join(row.tags)) for row in self.sentences(to_be_judged_on(data))]

    def sentences(self, given: GivenTags) -> list[TaggedSentence]:
        """Their tags in the scheme that is learned."""
        rows = list(_sentences(given, self.columns))
        if self.scheme is None or _scheme_of(rows, name_of(given, "given sentences")) is None:
            return rows
        return [row._replace(tags=tuple(convert(row.tags, self.scheme))) for row in rows]

    def readings(self, tokenizer: Tokenizer, sentences: Sequence[Sequence[str]]) -> list[list[Reading]]:
        """Each sentence as one row, or as several where it is too long for one."""
        words = [tokenizer.going_on(f" {word}") for sentence in sentences for word in sentence]
        pieces = iter(tokenizer.encode_many(words))
        found = []
        for sentence in sentences:
            own = [next(pieces) or [tokenizer.unknown] for _ in sentence]
            found.append([self._row(tokenizer, *part) for part in self._parts(sentence, own)])
        return found

    def _parts(
        self, words: Sequence[str], pieces: list[list[int]]
    ) -> Iterator[tuple[list[str], list[list[int]]]]:
        """As many words at a time as fit."""
        room, begin, used = self.layout.room(1, self.longest), 0, 0
        for place, piece in enumerate(pieces):
            pieces[place] = piece = piece[:room]
            if used + len(piece) > room:
                yield list(words[begin:place]), pieces[begin:place]
                begin, used = place, 0
            used += len(piece)
        yield list(words[begin:]), pieces[begin:]

    def _row(self, tokenizer: Tokenizer, words: list[str], pieces: list[list[int]]) -> Reading:
        reading = self.layout.lay(tokenizer, [[token for piece in pieces for token in piece]], self.longest)
        first = np.cumsum([self.layout.before, *map(len, pieces)])[:-1]
        reading = reading._replace(places=first.tolist())
        if not self.letters:
            return reading
        spelled_as = [""] * len(reading.ids)
        for place, word in zip(reading.places, words, strict=True):
            spelled_as[place] = word
        return reading._replace(words=tuple(spelled_as))

    def _lexicon(
        self, rows: list[TaggedSentence], judged: list[TaggedSentence], known: Lexicon | None
    ) -> Lexicon:
        labels = {} if known is None else known.labels
        if not labels:
            # A tag so rare that only validation data have it is no reason not to train.
            labels = {"label": Labels.learn(tag for row in (*rows, *judged) for tag in row.tags)}
        if known is not None:
            return Lexicon({"text": known["text"].with_tokens(self.layout.new_tokens)}, labels)
        learned = Tokenizer.train(self.tokenizer, [" ".join(row.words) for row in rows])
        return Lexicon({"text": learned.with_tokens(self.layout.new_tokens)}, labels)

    def _encoded(self, rows: list[TaggedSentence], lexicon: Lexicon) -> Examples:
        labels, encoded = lexicon.labels["label"], list[Example]()
        for row, readings in zip(
            rows, self.readings(lexicon["text"], [row.words for row in rows]), strict=True
        ):
            tags = iter([labels.number(tag, line=row.line) for tag in row.tags])
            encoded += [Example((reading,), [next(tags) for _ in reading.places]) for reading in readings]
        return Examples(encoded, [(" ".join(row.words), " ".join(row.tags)) for row in rows])


def _sentences(given: GivenTags, columns: ColumnSpec) -> Iterator[TaggedSentence]:
    if isinstance(given, str | Path):
        given = (given,)
    for line, row in enumerate(given, start=1):
        if isinstance(row, str | Path):
            for sentence in read_tagged(row, columns):
                yield sentence._replace(words=tuple(map(as_one_word, sentence.words)))
        elif isinstance(row, TaggedSentence):
            yield row
        else:
            words, tags = (tuple(words_of(text)) for text in row)
            if len(words) != len(tags):
                raise DataError(
                    f"{len(words)} words, but {len(tags)} tags", file="given sentences", line=line
                )
            yield TaggedSentence(words, tags, line)


def _scheme_of(rows: Sequence[TaggedSentence], name: str) -> Scheme | None:
    """That of all; where one is broken, it is named with its place."""
    try:
        return scheme_of([row.tags for row in rows])
    except DataError as error:
        seen = list[Sequence[str]]()
        for row in rows:
            seen.append(row.tags)
            try:
                scheme_of(seen)
            except DataError:
                raise DataError(str(error), file=name, line=row.line, field="tags") from None
        raise
