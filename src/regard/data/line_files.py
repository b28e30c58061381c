"""Records of files in which a line is a record, wherever in the files it stands."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from regard.data.formats import Record, check_equally_long, parse_jsonl, parse_tsv
from regard.data.line_index import BLOCK, LineIndex
from regard.data.lines import Line
from regard.data.places import Files, ending

Parse: TypeAlias = Callable[[Iterable[Line], Sequence[str], str], Iterator[Record]]

_PARSERS: dict[str, Parse] = {
    "tsv": parse_tsv,
    "txt": parse_tsv,
    "": parse_tsv,
    "jsonl": parse_jsonl,
    "json": parse_jsonl,
}


class LineFiles:
    """One file of records, or line-aligned files of which each holds one field."""

    def __init__(self, files: Sequence[Path], fields: Sequence[str]) -> None:
        self._files, self._fields = files, fields
        self.name = ",".join(str(file) for file in files)

    @classmethod
    def of(cls, files: Files, fields: Sequence[str]) -> "LineFiles | None":
        """None where a line cannot be found without unpacking or parsing all before it."""
        paths = [Path(file) for file in files]
        if len(paths) not in (1, len(fields)) or not all(_plain(path) for path in paths):
            return None
        if len(paths) == 1 and (ending(paths[0]) not in _PARSERS or _holds_an_array(paths[0])):
            return None
        return cls(paths, fields)

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(path.stat().st_size for path in self._files)

    def indexed(self, cache: Path | None) -> "IndexedLines":
        """Reads all files once, unless they are known in ``cache``."""
        indexes = [LineIndex.of(path, cache) for path in self._files]
        check_equally_long(self._files, [index.lines for index in indexes])
        if len(indexes) > 1:
            return AlignedLines(indexes, self._fields, self.name)
        return LinesOfOneFile(indexes, self._fields, self.name, _PARSERS[ending(self._files[0])])


class IndexedLines:
    """Records by the number of their line, which counts from 0."""

    def __init__(self, indexes: Sequence[LineIndex], fields: Sequence[str], name: str) -> None:
        self._indexes, self._fields, self.name = indexes, fields, name
        self.lines, self.blocks = indexes[0].lines, indexes[0].blocks
        self.size = sum(index.size for index in indexes)

    def fingerprint(self) -> str:
        """A digest of the content, order and all."""
        return hashlib.sha256(b"".join(index.digest for index in self._indexes)).hexdigest()

    def block(self, number: int) -> Iterator[Record]:
        return self.records(number * BLOCK, min((number + 1) * BLOCK, self.lines))

    def records(self, begin: int, end: int) -> Iterator[Record]:
        """Those of the lines from ``begin`` to ``end``, not included; a header is no record."""
        raise NotImplementedError


class AlignedLines(IndexedLines):
    """Line n of every file is one record."""

    def records(self, begin: int, end: int) -> Iterator[Record]:
        for lines in zip(*(index.read(begin, end) for index in self._indexes), strict=True):
            texts = {field: line.text for field, line in zip(self._fields, lines, strict=True)}
            yield Record(texts, self.name, lines[0].number)


class LinesOfOneFile(IndexedLines):
    def __init__(self, indexes: Sequence[LineIndex], fields: Sequence[str], name: str, parse: Parse) -> None:
        super().__init__(indexes, fields, name)
        self._parse = parse
        # It goes before whatever is read: it may be a header.
        self._first = indexes[0].read(0, 1)

    def records(self, begin: int, end: int) -> Iterator[Record]:
        lines = self._indexes[0].read(begin, end)
        before = self._first if begin else []
        for record in self._parse([*before, *lines], self._fields, self.name):
            if record.line > begin:
                yield record


def _plain(path: Path) -> bool:
    return path.is_file() and path.suffix != ".gz"


def _holds_an_array(path: Path) -> bool:
    """Whether a JSON file is one array, which only a parser can take apart."""
    if ending(path) not in ("json", "jsonl"):
        return False
    with path.open("rb") as file:
        return file.readline(1 << 10).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
