"""Rows of cells out of a table, quoted (CSV) or not (TSV), each with the line where it begins."""

import csv
from collections.abc import Iterator
from pathlib import Path

from regard.core.errors import DataError
from regard.data.lines import read_lines, shown


def table_rows(path: str | Path, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    if not quoted:
        yield from ((line.number, line.text.split("\t")) for line in read_lines(path))
        return
    reader, begin = csv.reader((line.text + "\n" for line in read_lines(path)), strict=True), 1
    try:
        for cells in reader:
            yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"broken CSV: {error}", file=shown(path), line=begin) from None
