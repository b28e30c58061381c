"""Lines of text out of files, with their place in every complaint.

A line ends at a line feed and nowhere else: aligned corpora contain U+2028, form feeds and lone carriage
returns inside their sentences. A carriage return before the line feed and a byte-order mark are taken off.
"""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, NamedTuple, cast

from regard.core.errors import DataError, nearest

STDIN = "-"
_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class Line(NamedTuple):
    number: int
    text: str


def read_lines(path: str | Path) -> Iterator[Line]:
    """Every line of a file, of a ``.gz`` file or of standard input (``-``), numbered from 1."""
    name = shown(path)
    number = 0
    try:
        with open_bytes(path) as file:
            for number, raw in enumerate(file, start=1):
                yield line_of(raw.rstrip(b"\n"), name, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"damaged gzip file: {error}", file=name, line=number + 1) from None
    if number == 0:
        raise DataError("the file is empty", file=name)


def line_of(raw: bytes, name: str, number: int) -> Line:
    """A line from its bytes without the line feed."""
    if number == 1:
        raw = _without_mark(raw, name)
    return Line(number, _decode(raw.removesuffix(b"\r"), name, number))


def shown(path: str | Path) -> str:
    """What a file is called in a message."""
    return "standard input" if str(path) == STDIN else str(path)


def open_bytes(path: str | Path) -> AbstractContextManager[IO[bytes]]:
    """The bytes of a file, unpacked if its name ends in ``.gz``; missing files are errors for people."""
    if str(path) == STDIN:
        return nullcontext(sys.stdin.buffer)
    path = Path(path)
    check_file(path)
    try:
        packed = path.suffix == ".gz"
        return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from None


def check_file(path: Path) -> None:
    if path.is_dir():
        raise DataError("is a folder, not a file", file=path)
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise DataError(f"no such file: the folder {folder} does not exist", file=path)
        raise DataError(f"no such file{nearest(path.name, (p.name for p in folder.iterdir()))}", file=path)


def _without_mark(raw: bytes, name: str) -> bytes:
    encoding = _OTHER_BOMS.get(raw[:2])
    if encoding is not None:
        raise DataError(f"the file is {encoding}; UTF-8 is needed", file=name, line=1)
    return raw.removeprefix(_BOM)


def _decode(raw: bytes, name: str, number: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"0x{raw[error.start]:02x}"
        message = f"not valid UTF-8: {found} at byte {error.start + 1} of the line ({error.reason})"
        raise DataError(message, file=name, line=number) from None
