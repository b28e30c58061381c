"""From the files people have to records, one at a time, and an account of what was left out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.data.formats import (
    Record,
    read_aligned,
    read_csv,
    read_jsonl,
    read_parquet,
    read_plain,
    read_tsv,
)
from regard.data.places import Files, Splits, Where, ending, find_splits, resolve

__all__ = ["Files", "ReadReport", "Record", "Splits", "Where", "find_splits", "full_records", "read_records"]

PAIR = ("source", "target")
TEXT = ("text",)


def read_records(
    path: str | Path | Sequence[str | Path],
    fields: Sequence[str],
    languages: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Iterator[Record]:
    """Records of a file, of line-aligned files, or of standard input; the format is the file's ending.

    ``languages`` chooses, and orders, the sides of ``{"translation": {"de": …, "en": …}}`` objects;
    ``columns`` names those of a table without a header.
    """
    files = resolve(path)
    if len(files) > 1:
        return read_aligned(files, fields)
    file = files[0]
    match ending(file):
        case "csv":
            return read_csv(file, fields, columns)
        case "jsonl" | "json":
            return read_jsonl(file, fields, languages)
        case "parquet":
            return read_parquet(file, fields, languages)
        case "tsv":
            return read_tsv(file, fields, columns)
        case _:
            # Plain text with several fields a line: tabs are what people put between them.
            return read_tsv(file, fields, columns) if len(fields) > 1 else read_plain(file, fields)


@dataclass
class ReadReport:
    """How many records were kept, how many had an empty field, and where the first of those stand."""

    kept: int = 0
    empty: int = 0
    first_empty: list[str] = field(default_factory=list)


def full_records(records: Iterable[Record], report: ReadReport, shown: int = 5) -> Iterator[Record]:
    """The records without an empty field; the others are counted, with the places of the first few."""
    for record in records:
        if all(text and not text.isspace() for text in record.fields.values()):
            report.kept += 1
            yield record
            continue
        report.empty += 1
        if len(report.first_empty) < shown:
            report.first_empty.append(f"{record.file}:{record.line}")
