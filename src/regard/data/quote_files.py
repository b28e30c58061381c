"""Questions with answers quoted from a text, out of SQuAD's JSON, objects a line, and tables."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.core.errors import DataError, nearest
from regard.data.json_items import json_items, kind_of, parse_json, text_of
from regard.data.lines import read_lines, shown
from regard.data.places import ending
from regard.data.tables import table_rows

BETWEEN = "\t"
KEYS: dict[str, tuple[str, ...]] = {
    "context": ("context", "text", "passage", "document"),
    "question": ("question", "query"),
    "answer": ("answer", "answers"),
    "start": ("start", "answer_start", "begin"),
}
"""Names that keys and columns go by, the first that is there counts."""


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


class Place(NamedTuple):
    file: str
    line: int | None
    name: str = ""

    def complaint(self, said: str) -> DataError:
        return DataError(said, file=self.file or None, line=self.line, field=self.name or None)


def read_questions(path: str | Path, columns: Sequence[str]) -> Iterator[Question]:
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
            yield from questions_of(item, Place(name, number if isinstance(whole, list) else None))
    elif kind == "jsonl":
        for line, item in json_items(read_lines(path), name):
            yield from questions_of(item, Place(name, line))
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
        yield from questions_of(values, Place(name, line))


def questions_of(item: Any, place: Place) -> Iterator[Question]:
    """Of SQuAD's whole file, of one of its articles or paragraphs, or of one question beside its text."""
    if not isinstance(item, Mapping):
        raise place.complaint(f"expected an object with 'context' and 'question', got {kind_of(item)}")
    for inner in ("data", "paragraphs"):
        if isinstance(item.get(inner), list):
            for part in item[inner]:
                yield from questions_of(part, place)
            return
    context = _text(item, "context", place)
    if isinstance(item.get("qas"), list):
        for asked in item["qas"]:
            named = place._replace(name=f"question {asked['id']}") if "id" in asked else place
            yield _question(asked, context, named)
    else:
        yield _question(item, context, place)


def _question(item: Mapping[str, Any], context: str, place: Place) -> Question:
    question = _text(item, "question", place)
    if not context.strip():
        raise place.complaint("the text that is read for it is empty")
    name = text_of(item.get("id", ""), "id", place.file, place.line)
    if item.get("is_impossible"):
        return Question(question, context, (), name)
    key = next((key for key in KEYS["answer"] if key in item), None)
    start = next((item[key] for key in KEYS["start"] if key in item), None)
    pairs = _pairs(None if key is None else item[key], start, place)
    return Question(question, context, tuple(located(context, *pair, place) for pair in pairs), name)


def _pairs(given: Any, start: Any, place: Place) -> list[tuple[str, int | None]]:
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


def located(context: str, text: str, begin: int | None, place: Place) -> Quote:
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


def _text(item: Mapping[str, Any], field: str, place: Place) -> str:
    key = next((key for key in KEYS[field] if key in item), None)
    if key is None:
        raise place.complaint(f"there is no {field!r}{nearest(field, map(str, item))}")
    return text_of(item[key], key, place.file, place.line)


def _one_line(text: str) -> str:
    return " ".join(text.split())
