"""One function a file format: a path and the fields wanted in, records out, one at a time.

Where a line is a record there is a second one, from lines to records: they may be any lines, as long as the
first line of the file comes first, since it tells what the others mean.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.core.errors import DataError, UsageError, nearest
from regard.data.json_items import json_items, kind_of, text_of
from regard.data.lines import Line, check_file, read_lines, shown
from regard.data.places import ending

ALIASES: dict[str, tuple[str, ...]] = {
    "source": ("source", "src", "input", "question", "x"),
    "target": ("target", "tgt", "output", "answer", "y"),
    "text": ("text", "sentence", "source", "src", "input", "question", "x"),
    "first": ("first", "sentence1", "premise", "question1", "text_a", "sentence_a", "s1", "a"),
    "second": ("second", "sentence2", "hypothesis", "question2", "text_b", "sentence_b", "s2", "b"),
    "label": ("label", "class", "category", "gold_label", "gold", "target", "score", "quality", "y"),
}
"""Names that columns and keys go by in the files people have, the first that is there counts."""

PASSED_OVER = "-"
"""Stands for a column that is not wanted where the columns of a file without a header are named."""

PARQUET_ROWS = 4096


class Record(NamedTuple):
    """One example and where it stood."""

    fields: dict[str, str]
    file: str
    line: int


def read_tsv(path: str | Path, fields: Sequence[str], named: Sequence[str] = ()) -> Iterator[Record]:
    """Columns between tabs, by position, under a header, or as they are ``named``; quotes mean nothing."""
    return parse_tsv(read_lines(path), fields, shown(path), named)


def parse_tsv(
    lines: Iterable[Line], fields: Sequence[str], name: str, named: Sequence[str] = ()
) -> Iterator[Record]:
    columns: Sequence[int] | None = _wanted_columns(named, fields) if named else None
    width = len(named)
    for number, text in lines:
        cells = text.split("\t") if len(fields) > 1 or "\t" in text else [text]
        if columns is None:
            columns = _header(cells, fields)
            if columns is not None:
                width = len(cells)
                continue
            columns, width = range(len(fields)), len(fields)
        if len(cells) != width:
            raise _wrong_width(name, number, width, cells, "tabs")
        assert columns is not None
        yield Record(
            {field: cells[column] for field, column in zip(fields, columns, strict=True)}, name, number
        )


def read_csv(path: str | Path, fields: Sequence[str], named: Sequence[str] = ()) -> Iterator[Record]:
    """Comma-separated values, quoted as RFC 4180 says; a row may span lines."""
    name = shown(path)
    # The module wants the line ends inside quotes, so they are given back.
    reader = csv.reader((line.text + "\n" for line in read_lines(path)), strict=True)
    columns: Sequence[int] | None = _wanted_columns(named, fields) if named else None
    width = len(named) or len(fields)
    started = 1
    try:
        for cells in reader:
            if not cells:
                cells = [""]
            if columns is None:
                columns = _header(cells, fields)
                if columns is not None:
                    width, started = len(cells), reader.line_num + 1
                    continue
                columns = range(len(fields))
            if len(cells) != width:
                raise _wrong_width(name, started, width, cells, "commas")
            values = {field: cells[column] for field, column in zip(fields, columns, strict=True)}
            yield Record(values, name, started)
            started = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"broken CSV: {error}", file=name, line=started) from None


def read_jsonl(path: str | Path, fields: Sequence[str], languages: Sequence[str] = ()) -> Iterator[Record]:
    """One JSON object a line; a file that is one array is read whole, its items counted as lines."""
    return parse_jsonl(read_lines(path), fields, shown(path), languages)


def parse_jsonl(
    lines: Iterable[Line], fields: Sequence[str], name: str, languages: Sequence[str] = ()
) -> Iterator[Record]:
    for number, item in json_items(lines, name):
        yield Record(pick(item, fields, languages, name, number), name, number)


def read_parquet(path: str | Path, fields: Sequence[str], languages: Sequence[str] = ()) -> Iterator[Record]:
    """Rows of a Parquet file, in batches; needs pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise UsageError(f'{path}: reading Parquet needs pyarrow: pip install "regard[data]"') from None
    name = shown(path)
    check_file(Path(path))
    try:
        file = parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"not a readable Parquet file: {error}", file=name) from None
    wanted = ("translation",) if "translation" in file.schema_arrow.names else None
    if wanted is None:
        columns = _header(file.schema_arrow.names, fields)
        if columns is None:
            raise _missing(fields, file.schema_arrow.names, name, None)
        wanted = tuple(file.schema_arrow.names[column] for column in columns)
    number = 0
    try:
        for batch in file.iter_batches(batch_size=PARQUET_ROWS, columns=list(dict.fromkeys(wanted))):
            for item in batch.to_pylist():
                number += 1
                yield Record(pick(item, fields, languages, name, number), name, number)
    except pyarrow.ArrowException as error:
        raise DataError(f"damaged Parquet file: {error}", file=name, line=number + 1) from None
    if number == 0:
        raise DataError("the file has no rows", file=name)


def read_plain(path: str | Path, fields: Sequence[str]) -> Iterator[Record]:
    """One text a line."""
    name, field = shown(path), fields[0]
    for number, text in read_lines(path):
        yield Record({field: text}, name, number)


def read_aligned(paths: Sequence[str | Path], fields: Sequence[str]) -> Iterator[Record]:
    """Line n of every file is one record (the Moses way: train.en, train.de)."""
    if len(paths) != len(fields):
        raise UsageError(
            f"{len(fields)} line-aligned files are needed ({', '.join(fields)}), got {len(paths)}"
        )
    name = ",".join(shown(path) for path in paths)
    readers = [read_lines(path) for path in paths]
    number = 0
    while True:
        found = [next(reader, None) for reader in readers]
        if any(line is None for line in found):
            break
        number += 1
        texts = {field: line.text for field, line in zip(fields, found, strict=True) if line is not None}
        yield Record(texts, name, number)
    counts = [
        number + (line is not None) + sum(1 for _ in reader)
        for line, reader in zip(found, readers, strict=True)
    ]
    check_equally_long(paths, counts)


def check_equally_long(paths: Sequence[str | Path], lines: Sequence[int]) -> None:
    if len(set(lines)) > 1:
        said = " but ".join(f"{path} has {count} lines" for path, count in zip(paths, lines, strict=True))
        raise DataError(f"line-aligned files must be equally long, {said}")


def pick(
    item: Any, fields: Sequence[str], languages: Sequence[str], name: str, number: int
) -> dict[str, str]:
    """The wanted fields of one JSON object, under their own names or the usual aliases."""
    if not isinstance(item, Mapping):
        raise DataError(
            f"expected an object with {_listed(fields)}, got {kind_of(item)}", file=name, line=number
        )
    translation = item.get("translation")
    if isinstance(translation, Mapping) and len(fields) == 2:
        keys = list(languages) or list(translation)
        missing = [key for key in keys if key not in translation]
        if missing or len(keys) != len(fields):
            given = f"translation has {_listed(translation)}"
            raise DataError(f"{given}, {_listed(keys)} wanted; say which two", file=name, line=number)
        return {f: text_of(translation[k], k, name, number) for f, k in zip(fields, keys, strict=True)}
    keys = [next((alias for alias in _aliases(field) if alias in item), "") for field in fields]
    if "" in keys:
        raise _missing(fields, list(item), name, number)
    return {field: text_of(item[key], key, name, number) for field, key in zip(fields, keys, strict=True)}


def _aliases(field: str) -> tuple[str, ...]:
    return ALIASES.get(field, (field,))


def _header(cells: Sequence[str], fields: Sequence[str]) -> list[int] | None:
    """Which column holds which field, if this row names them all."""
    names = [cell.strip().lower() for cell in cells]
    found = [next((names.index(a) for a in _aliases(field) if a in names), -1) for field in fields]
    return None if -1 in found else found


def _wanted_columns(named: Sequence[str], fields: Sequence[str]) -> list[int]:
    """As ``_header``, for a file whose columns a person has named."""
    found = _header(named, fields)
    if found is None:
        missing = next(field for field in fields if _header(named, [field]) is None)
        raise UsageError(
            f"data.columns={','.join(named)} names no column {missing!r}{nearest(missing, named)}; "
            f"needed are {_listed(fields)}, and {PASSED_OVER!r} for a column that is not"
        )
    return found


def _wrong_width(name: str, number: int, expected: int, cells: Sequence[str], between: str) -> DataError:
    hint = ""
    if len(cells) == 1 and expected > 1:
        others = {"tabs": "\t", "commas": ",", "semicolons": ";"}
        seen = [word for word, mark in others.items() if word != between and mark in cells[0]]
        hint = f" (there are {seen[0]} in it)" if seen else ""
        if not seen and Path(name).suffix and not ending(name):
            hint = " (if this file is one of a line-aligned pair, give both: FILE,FILE)"
    message = f"expected {expected} columns between {between}, found {len(cells)}{hint}"
    return DataError(message, file=name, line=number)


def _missing(fields: Sequence[str], names: Sequence[str], file: str, line: int | None) -> DataError:
    field = next(field for field in fields if not any(alias in names for alias in _aliases(field)))
    return DataError(f"there is no {field!r}{nearest(field, names)}", file=file, line=line)


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(repr(name) for name in names)
