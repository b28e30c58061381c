"""Where pairs come from, in one form: something that can be gone through again, with a fingerprint.

Files are read anew each time, so that a corpus never has to fit in memory; what comes from standard input or
from Python is kept.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool

from regard.core.errors import DataError
from regard.data.formats import Record
from regard.data.hub import HubRecords, is_hub_name
from regard.data.line_files import LineFiles
from regard.data.lines import STDIN, open_bytes
from regard.data.places import Files, Where, resolve
from regard.data.readers import PAIR, ReadReport, full_records, read_records

Pair: TypeAlias = tuple[str, str]
Given: TypeAlias = Where | Iterable[tuple[str, ...]] | Iterable[Record]
"""A path, a tuple of line-aligned paths, or rows of texts as they are."""


_GIVEN = "given pairs"
"""What rows that come from Python are called."""


class Origin(ABC):
    """Records of pairs, as often as one likes."""

    name: str
    """What a report or a complaint calls it."""

    @abstractmethod
    def __iter__(self) -> Iterator[Record]: ...

    @abstractmethod
    def fingerprint(self) -> str:
        """A digest of the content, order and all."""

    def line_files(self) -> LineFiles | None:
        """The same records, to be read from any line on, where they can be."""
        return None


class FileOrigin(Origin):
    def __init__(self, files: Files, fields: Sequence[str] = PAIR, columns: Sequence[str] = ()) -> None:
        self._files, self._fields, self._columns = files, fields, columns
        self.name = ",".join(str(file) for file in files)

    def __iter__(self) -> Iterator[Record]:
        return read_records(self._files, self._fields, columns=self._columns)

    def fingerprint(self) -> str:
        """Of the bytes, after unpacking: reading them all is far cheaper than parsing them."""
        digest = hashlib.sha256()
        for file in self._files:
            with open_bytes(file) as opened:
                one = hashlib.sha256()
                while block := opened.read(1 << 20):
                    one.update(block)
            digest.update(one.digest())
        return digest.hexdigest()

    def line_files(self) -> LineFiles | None:
        return LineFiles.of(self._files, self._fields)


class MemoryOrigin(Origin):
    def __init__(self, records: list[Record], name: str, fields: Sequence[str] = PAIR) -> None:
        self._records, self._fields, self.name = records, fields, name

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for record in self._records:
            for field in self._fields:
                try:
                    text = record.fields[field].encode()
                except UnicodeEncodeError as error:
                    said = f"half a surrogate pair at character {error.start + 1}"
                    raise DataError(said, file=record.file, line=record.line, field=field) from None
                digest.update(len(text).to_bytes(8, "little") + text)
        return digest.hexdigest()


class HubOrigin(Origin):
    """A data set of the hub by its name."""

    def __init__(self, name: str, fields: Sequence[str] = PAIR) -> None:
        self._records, self.name = HubRecords(name, fields), name

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def fingerprint(self) -> str:
        return self._records.fingerprint()


def origin_of(given: Given, fields: Sequence[str] = PAIR, columns: Sequence[str] = ()) -> Origin:
    """Files stay files, data sets of the hub stay there; everything else is taken into memory."""
    if isinstance(given, str) and is_hub_name(given):
        return HubOrigin(given, fields)
    if isinstance(given, str | Path):
        return _from_files(resolve(given), fields, columns)
    if isinstance(given, Sequence) and given and isinstance(given[0], str | Path):
        return _from_files(tuple(str(part) for part in given), fields, columns)
    records = [_record(row, line, fields) for line, row in enumerate(given, start=1)]
    return MemoryOrigin(records, _GIVEN, fields)


def _from_files(files: Files, fields: Sequence[str], columns: Sequence[str]) -> Origin:
    if STDIN in files:
        return MemoryOrigin(list(read_records(files, fields, columns=columns)), "standard input", fields)
    return FileOrigin(files, fields, columns)


def _record(row: object, line: int, fields: Sequence[str]) -> Record:
    if isinstance(row, Record):
        return row
    if isinstance(row, Sequence) and len(row) == len(fields) and all(isinstance(text, str) for text in row):
        return Record(dict(zip(fields, row, strict=True)), _GIVEN, line)
    wanted = "a pair of texts" if tuple(fields) == PAIR else f"{len(fields)} texts ({', '.join(fields)})"
    raise DataError(f"expected {wanted}, got {row!r:.60}", file=_GIVEN, line=line)


class Rows:
    """The full pairs of an origin, as often as one likes: those held out, those not held out, or all.

    ``report`` tells about the latest time they were gone through.
    """

    def __init__(
        self, origin: Origin, held: Bool[np.ndarray, "rows"] | None = None, wanted: bool = False
    ) -> None:
        self._origin, self._held, self._wanted = origin, held, wanted
        self.report = ReadReport()

    def __iter__(self) -> Iterator[Pair]:
        self.report = ReadReport()
        for number, record in enumerate(full_records(self._origin, self.report)):
            if self._held is None or bool(self._held[number]) == self._wanted:
                yield record.fields["source"], record.fields["target"]


class Texts:
    """The texts of rows: of one side, or of both in turn."""

    def __init__(self, rows: Iterable[Pair], sides: Sequence[int]) -> None:
        self._rows, self._sides = rows, sides

    def __iter__(self) -> Iterator[str]:
        for pair in self._rows:
            for side in self._sides:
                yield pair[side]
