"""Where running text comes from: files, folders, records, in one form that can be gone through again.

A document is handed on in passages, so that one of many gigabytes never has to be in memory.
"""

import glob
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from regard.core.errors import DataError
from regard.data.hub import HubRecords, is_hub_name
from regard.data.lines import STDIN, open_bytes, read_lines
from regard.data.places import FORMATS, Files, Splits, ending, split_named
from regard.data.readers import TEXT, read_records

DocumentUnit: TypeAlias = Literal["line", "file"]
GivenText: TypeAlias = str | Path | Sequence[str | Path] | Iterable[str]
"""A file, a folder, a pattern, several of them, or documents as they are (only from Python)."""

PASSAGE = 1 << 20
"""Characters after which a long document is cut into passages."""
_RECORDS = ("tsv", "csv", "jsonl", "json", "parquet")


class Passage(NamedTuple):
    text: str
    ends: bool
    """Whether its document ends here."""


class Documents(ABC):
    """Passages in order, as often as one likes."""

    name: str

    @abstractmethod
    def __iter__(self) -> Iterator[Passage]: ...

    @abstractmethod
    def fingerprint(self) -> str:
        """A digest of the content, order and all."""

    @property
    def texts(self) -> "Texts":
        return Texts(self)


class Texts:
    """The texts of all passages, as often as one likes."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[str]:
        return (passage.text for passage in self._documents)


class FileDocuments(Documents):
    def __init__(self, files: Files, unit: DocumentUnit) -> None:
        self._files, self._unit = files, unit
        self.name = ",".join(str(file) for file in files)

    def __iter__(self) -> Iterator[Passage]:
        for file in self._files:
            if ending(file) in _RECORDS:
                records = read_records(file, TEXT)
                yield from (part for record in records for part in passages(record.fields["text"]))
            elif self._unit == "line":
                yield from (Passage(line.text, True) for line in read_lines(file))
            else:
                yield from _whole(file)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self._unit.encode())
        for file in self._files:
            one = hashlib.sha256()
            with open_bytes(file) as opened:
                while block := opened.read(1 << 20):
                    one.update(block)
            digest.update(one.digest())
        return digest.hexdigest()


class GivenDocuments(Documents):
    """Documents that are in memory already."""

    def __init__(self, texts: Iterable[str], name: str = "given texts") -> None:
        self._texts, self.name = list(texts), name
        for number, text in enumerate(self._texts, start=1):
            if not isinstance(text, str):
                raise DataError(f"expected a text, got {text!r:.60}", file=name, line=number)

    def __iter__(self) -> Iterator[Passage]:
        return (part for text in self._texts for part in passages(text))

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for text in self._texts:
            content = text.encode("utf-8", errors="surrogatepass")
            digest.update(len(content).to_bytes(8, "little") + content)
        return digest.hexdigest()


class HubDocuments(Documents):
    """The texts of a data set of the hub, a document each."""

    def __init__(self, name: str) -> None:
        self._records, self.name = HubRecords(name, TEXT), name

    def __iter__(self) -> Iterator[Passage]:
        return (part for record in self._records for part in passages(record.fields["text"]))

    def fingerprint(self) -> str:
        return self._records.fingerprint()


class Share(Documents):
    """The first part of some documents, or the rest: cut after so many characters, at the end of a word."""

    def __init__(self, whole: Documents, characters: int, rest: bool) -> None:
        self._whole, self._characters, self._rest = whole, characters, rest
        self.name = whole.name

    def __iter__(self) -> Iterator[Passage]:
        left = self._characters
        for passage in self._whole:
            if len(passage.text) <= left:
                left -= len(passage.text)
                if not self._rest:
                    yield passage
                continue
            head, tail = _cut(passage.text, left)
            left = 0
            if not self._rest:
                if head:
                    yield Passage(head, True)
                return
            yield Passage(tail, passage.ends)

    def fingerprint(self) -> str:
        return self._whole.fingerprint()


def documents_of(given: GivenText, unit: DocumentUnit) -> Documents:
    """Files stay files, to be read anew each time; what comes from a pipe or from Python is kept."""
    if isinstance(given, str) and is_hub_name(given):
        return HubDocuments(given)
    if isinstance(given, str | Path):
        return _from_files(text_files(given), unit)
    several = list(given)
    if several and all(isinstance(one, Path) for one in several):
        return _from_files(tuple(file for one in several for file in text_files(one)), unit)
    return GivenDocuments(several)  # type: ignore[arg-type]


def text_splits(where: str | Path) -> Splits:
    """The splits inside a folder; everything else is training data."""
    folder = Path(where)
    if not folder.is_dir():
        return Splits(text_files(where))
    train = split_named(folder, "train")
    if train is None:
        return Splits(text_files(where))
    return Splits(train, split_named(folder, "valid"), split_named(folder, "test"))  # which are paths too


def text_files(where: str | Path) -> tuple[Path, ...]:
    """The files that ``where`` means: one, several between commas, a pattern, or all of a folder.

    Always paths: a text would be a document.
    """
    text, path = str(where), Path(where)
    if text == STDIN or path.is_file():
        return (path,)
    if path.is_dir():
        found = [file for file in sorted(path.rglob("*")) if file.is_file() and ending(file)]
        if not found:
            known = ", ".join(f".{name}" for name in FORMATS)
            raise DataError(f"this folder holds no text: expected {known} (or .gz of them)", file=path)
        return tuple(found)
    if any(mark in text for mark in "*?["):
        matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 (pathlib wants a folder to begin at)
        if not matches:
            raise DataError("no file matches this pattern", file=text)
        return tuple(file for match in matches for file in text_files(match))
    if "," in text:
        return tuple(file for part in text.split(",") for file in text_files(part.strip()))
    next(iter(read_lines(where)))  # says what is wrong with it
    return (path,)


def passages(text: str) -> Iterator[Passage]:
    """One document, cut only if it is very long."""
    while len(text) > PASSAGE:
        head, text = _cut(text, PASSAGE)
        yield Passage(head, False)
    yield Passage(text, True)


def _from_files(files: Files, unit: DocumentUnit) -> Documents:
    if STDIN not in map(str, files):
        return FileDocuments(files, unit)
    lines = [line.text for line in read_lines(STDIN)]
    texts = lines if unit == "line" else ["\n".join(lines) + "\n"]
    return GivenDocuments(texts, "standard input")


def _whole(file: str | Path) -> Iterator[Passage]:
    """A file as one document; its lines keep their ends."""
    held, size = list[str](), 0
    for line in read_lines(file):
        held.append(line.text + "\n")
        size += len(held[-1])
        if size > 2 * PASSAGE:
            head, tail = _cut("".join(held), PASSAGE)
            yield Passage(head, False)
            held, size = [tail], len(tail)
    yield Passage("".join(held), True)


def _cut(text: str, at: int) -> tuple[str, str]:
    """Before the last space that leaves at most ``at`` characters in front: no word is torn.

    The tail begins with that space. Where there is none, the cut is where it was asked for.
    """
    place = text.rfind(" ", 0, at + 1)
    place = place if place > 0 else at
    return text[:place], text[place:]
