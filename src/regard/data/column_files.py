"""Sentences with a tag at every word, out of the files they come in.

A word a line, in columns, and an empty line between sentences (the CoNLL shared tasks); a sentence a line,
its words and its tags in two columns between tabs; or JSON objects with "words" and "tags".
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.core.errors import DataError, nearest
from regard.core.spec import Spec
from regard.data.json_items import json_items, kind_of, text_of
from regard.data.lines import Line, read_lines, shown
from regard.data.places import ending

KEYS: dict[str, tuple[str, ...]] = {"words": ("words", "tokens"), "tags": ("tags", "labels", "ner_tags")}
"""Names that keys go by in JSON files, the first that is there counts."""
_DOCUMENT = "-DOCSTART-"
# Not every white space: some corpora have no-break spaces inside their words.
_BLANKS = re.compile(r"[ \t]+")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_NO_WORD = re.compile(r"#|\d+[-.]\d+\t")


class ColumnSpec(Spec):
    """Where words and tags stand; columns are counted from 0, or from the last, which is -1."""

    word: int = 0
    tag: int = -1
    one_a_line: bool = False
    """A line is a whole sentence: tabs between the columns, blanks between words and between tags."""
    conll_u: bool = False
    """Leave out comments (#), contractions (1-2) and words that are not in the text (1.1)."""


class TaggedSentence(NamedTuple):
    words: tuple[str, ...]
    tags: tuple[str, ...]
    line: int
    """Where it begins, from 1."""


@dataclass
class TaggedReport:
    """What was read, and what was passed over."""

    sentences: int = 0
    words: int = 0
    documents: int = 0
    """Lines that begin with -DOCSTART-."""
    left_out: int = 0
    """Lines that CoNLL-U has beside those of the words."""


def read_tagged(
    path: str | Path, columns: ColumnSpec | None = None, report: TaggedReport | None = None
) -> Iterator[TaggedSentence]:
    """The sentences of a file, of a ``.gz`` file or of standard input (``-``), one at a time."""
    columns, report, name = columns or ColumnSpec(), report or TaggedReport(), shown(path)
    lines = read_lines(path)
    if ending(path) in ("jsonl", "json"):
        found = _from_json(lines, name)
    elif columns.one_a_line:
        found = _from_lines(lines, _Table(columns, name))
    else:
        found = _from_columns(lines, _Table(columns, name), columns.conll_u, report)
    read = 0
    for sentence in found:
        read += 1
        report.sentences += 1
        report.words += len(sentence.words)
        yield sentence
    if not read:
        raise DataError("there is no sentence in the file", file=name)


def words_of(text: str) -> list[str]:
    """The words of a line."""
    return [word for word in _BLANKS.split(text) if word]


def as_one_word(word: str) -> str:
    """A blank inside a word must not part it."""
    return _BLANKS.sub(_NO_BREAK, word)


def _from_columns(
    lines: Iterable[Line], table: "_Table", conll_u: bool, report: TaggedReport
) -> Iterator[TaggedSentence]:
    pairs, begin = list[tuple[str, str]](), 0
    for line in lines:
        document = line.text.startswith(_DOCUMENT)
        report.documents += document
        if document or not line.text.strip():
            if pairs:
                yield _sentence(pairs, begin)
            pairs = []
        elif conll_u and _NO_WORD.match(line.text):
            report.left_out += 1
        else:
            begin = line.number if not pairs else begin
            pairs.append(table.word_and_tag(line))
    if pairs:
        yield _sentence(pairs, begin)


def _sentence(pairs: list[tuple[str, str]], line: int) -> TaggedSentence:
    words, tags = zip(*pairs, strict=True)
    return TaggedSentence(words, tags, line)


def _from_lines(lines: Iterable[Line], table: "_Table") -> Iterator[TaggedSentence]:
    for line in lines:
        if line.text.strip():
            words, tags = (tuple(cell.split(" ")) for cell in table.two_texts(line))
            yield _as_many(TaggedSentence(words, tags, line.number), table.name)


def _from_json(lines: Iterable[Line], name: str) -> Iterator[TaggedSentence]:
    for number, item in json_items(lines, name):
        if not isinstance(item, Mapping):
            said = f"expected an object with 'words' and 'tags', got {kind_of(item)}"
            raise DataError(said, file=name, line=number)
        words, tags = (_texts(item, field, name, number) for field in KEYS)
        yield _as_many(TaggedSentence(words, tags, number), name)


def _texts(item: Mapping[str, Any], field: str, name: str, number: int) -> tuple[str, ...]:
    key = next((key for key in KEYS[field] if key in item), None)
    if key is None:
        raise DataError(f"there is no {field!r}{nearest(field, item)}", file=name, line=number)
    if not isinstance(item[key], list):
        said = f"expected an array of texts, got {kind_of(item[key])}"
        raise DataError(said, file=name, line=number, field=key)
    return tuple(text_of(value, key, name, number) for value in item[key])


def _as_many(sentence: TaggedSentence, name: str) -> TaggedSentence:
    words, tags = len(sentence.words), len(sentence.tags)
    if words != tags:
        raise DataError(f"{words} words, but {tags} tags", file=name, line=sentence.line)
    if not all(sentence.words) or not all(sentence.tags) or not words:
        raise DataError("a word or a tag is empty", file=name, line=sentence.line)
    return sentence


class ColumnBlock(NamedTuple):
    """A sentence as it stood in a column file: every line of it, and which of them are words."""

    lines: tuple[str, ...]
    words: tuple[str | None, ...]
    """None for a line that holds no word: a comment, the mark of a document, an empty line."""
    between: str

    @property
    def text(self) -> str:
        return " ".join(word for word in self.words if word is not None)

    def with_column(self, values: Sequence[str]) -> list[str]:
        """Its lines, those of words with one value more."""
        given = iter(values)
        return [
            line if word is None else f"{line}{self.between}{next(given)}"
            for line, word in zip(self.lines, self.words, strict=True)
        ]


def read_column_blocks(path: str | Path, columns: ColumnSpec) -> Iterator[ColumnBlock]:
    """The sentences of a column file whose words are to be tagged; nothing in it is lost."""
    table = _Table(ColumnSpec(word=columns.word, tag=columns.word), shown(path))
    lines, words = list[str](), list[str | None]()
    for line in read_lines(path):
        empty = line.text.startswith(_DOCUMENT) or not line.text.strip()
        no_word = empty or (columns.conll_u and _NO_WORD.match(line.text) is not None)
        lines.append(line.text)
        words.append(None if no_word else table.word(line))
        if empty:
            yield ColumnBlock(tuple(lines), tuple(words), table.mark)
            lines, words = [], []
    if lines:
        yield ColumnBlock(tuple(lines), tuple(words), table.mark)


class _Table:
    """Lines of cells; the first one says what is between them and how many there are."""

    def __init__(self, columns: ColumnSpec, name: str) -> None:
        self.name = name
        self._columns = (columns.word, columns.tag)
        self._between = "tabs" if columns.one_a_line else ""
        self._width = 0

    @property
    def mark(self) -> str:
        """What is put between cells."""
        return "\t" if self._between == "tabs" else " "

    def word_and_tag(self, line: Line) -> tuple[str, str]:
        word, tag = self.two_texts(line)
        if not word or not tag:
            raise self._complaint(f"the {'tag' if word else 'word'} is empty", line)
        if " " in tag:
            said = f"the tag {tag!r:.40} has blanks in it; if a line is a whole sentence, set one_a_line"
            raise self._complaint(said, line)
        return word, tag

    def word(self, line: Line) -> str:
        word, _ = self.two_texts(line)
        if not word:
            raise self._complaint("the word is empty", line)
        return as_one_word(word)

    def two_texts(self, line: Line) -> tuple[str, str]:
        """What is in the columns of the word and of the tag."""
        cells = self._split(line.text)
        self._width = self._width or len(cells)
        if len(cells) != self._width:
            said = f"expected {self._width} columns between {self._between}, found {len(cells)}"
            raise self._complaint(said, line)
        for column in self._columns:
            if not -len(cells) <= column < len(cells):
                said = f"expected a column {column}, found {len(cells)} columns between {self._between}"
                raise self._complaint(said, line)
        word, tag = (cells[column] for column in self._columns)
        return word, tag

    def _split(self, text: str) -> list[str]:
        self._between = self._between or ("tabs" if "\t" in text else "blanks")
        return text.split("\t") if self._between == "tabs" else _BLANKS.split(text.strip(" \t"))

    def _complaint(self, said: str, line: Line) -> DataError:
        return DataError(said, file=self.name, line=line.number)
