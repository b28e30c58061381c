"""Files of word vectors, as word2vec and GloVe write them, also packed (.gz).

==================  =====================================================================
word2vec            a line ``words width``, then ``word value value …`` a line
word2vec-binary     the same first line, then each word, a blank and its 32-bit values
glove               as word2vec, without the first line
==================  =====================================================================
"""

import gzip
import os
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from regard.core.errors import DataError, UsageError, nearest
from regard.data.lines import open_bytes

FORMATS = ("word2vec", "word2vec-binary", "glove")
_LONGEST_WORD = 10_000
"""Bytes after which a binary file that shows no blank is none."""


class VectorFile(NamedTuple):
    words: list[str]
    vectors: Float[np.ndarray, "words width"]


@runtime_checkable
class _Bytes(Protocol):
    """A file open for reading, packed or not."""

    def read(self, size: int = ..., /) -> bytes: ...
    def readline(self, size: int = ..., /) -> bytes: ...
    def __iter__(self) -> Iterator[bytes]: ...


class _Row(NamedTuple):
    line: int
    word: str
    values: np.ndarray | None
    """None: not wanted."""


def read_vectors(path: Path, wanted: Container[str] | None = None) -> VectorFile:
    """All words, or only those ``wanted``; the rest is looked through all the same."""
    lines, found = dict[str, int](), list[np.ndarray]()
    words = list[str]()
    with _reading(path) as (file, form):
        for line, word, values in form.rows(file, path, wanted):
            if word in lines:
                what = "word" if form.binary else "line"
                raise DataError(
                    f"{word!r} stands here twice, first at {what} {lines[word]}", file=path, line=line
                )
            lines[word] = line
            if values is not None:
                words.append(word)
                found.append(values)
    if not lines:
        raise DataError("there is no vector here", file=path)
    if form.words is not None and form.words != len(lines):
        raise DataError(
            f"its first line says {form.words:,} words, but there are {len(lines):,}", file=path, line=1
        )
    table = np.stack(found) if found else np.zeros((0, form.width), np.float32)
    return VectorFile(words, table)


def width_of(path: Path) -> int:
    """How many values its vectors have, from the beginning of the file alone."""
    with _reading(path) as (_, form):
        return form.width


def write_vectors(path: Path, words: Sequence[str], vectors: np.ndarray, to: str) -> None:
    """In one piece or not at all."""
    if to not in FORMATS:
        raise UsageError(f"there is no such format {to!r}{nearest(to, FORMATS)}")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; a file of vectors is to be written here")
    blanks = next((word for word in words if not word or any(c.isspace() for c in word)), None)
    if blanks is not None:
        raise UsageError(f"{blanks!r} has a blank in it, which ends a word in a file of vectors")
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.writing")
    try:
        with temporary.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, filename="", mtime=0, mode="wb") as packed:
                    packed.writelines(_written(words, vectors, to))
            else:
                raw.writelines(_written(words, vectors, to))
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _written(words: Sequence[str], vectors: np.ndarray, to: str) -> Iterator[bytes]:
    vectors = np.asarray(vectors, dtype="<f4")
    if to != "glove":
        yield f"{len(words)} {vectors.shape[1]}\n".encode()
    for word, row in zip(words, vectors, strict=True):
        # As text the fewest digits that give back the same 32 bits.
        values = row.tobytes() if to == "word2vec-binary" else " ".join(row.astype(str)).encode()
        yield word.encode() + b" " + values + b"\n"


# ---------------------------------------------------------------- reading


class _Form(NamedTuple):
    """What the beginning of a file says about the rest."""

    binary: bool
    width: int
    words: int | None
    """How many there should be; None: it does not say."""
    first: bytes
    """What was read already and belongs to the rest."""

    def rows(self, file: _Bytes, path: Path, wanted: Container[str] | None) -> Iterator[_Row]:
        if self.binary:
            return _binary_rows(file, path, self, wanted)
        first = 1 if self.words is None else 2
        lines = enumerate(_chained(self.first, file), start=first)
        return (
            _text_row(raw, path, line, self.width, wanted)
            for line, raw in lines
            # Some programs leave an empty line at the end.
            if raw.strip() or line == first
        )


@contextmanager
def _reading(path: Path) -> Iterator[tuple[_Bytes, _Form]]:
    try:
        with open_bytes(path) as file:
            yield file, _form(file, path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"damaged gzip file: {error}", file=path) from None


def _form(file: _Bytes, path: Path) -> _Form:
    first = file.readline()
    if not first.strip():
        raise DataError(
            "the file is empty" if not first else "expected a vector, found an empty line", file=path, line=1
        )
    header = first.split()
    if len(header) != 2 or not all(part.isdigit() for part in header):
        cells = _decoded(first, path, 1).split()
        width = len(cells) - 1
        # A word may have blanks in it: only what can be read as numbers, from the right, is the vector.
        while width > 0 and not _are_numbers(cells[-width:]):
            width -= 1
        if width == 0:
            raise DataError(
                f"expected a word and its values, found {cells[0][:40]!r} alone", file=path, line=1
            )
        return _Form(False, width, None, first)
    words, width = int(header[0]), int(header[1])
    if width == 0:
        raise DataError("its first line says that vectors have no values", file=path, line=1)
    peeked = file.read(1 << 16)
    if _is_text(peeked.split(b"\n", 1)[0]):
        return _Form(False, width, words, peeked + (b"" if peeked.endswith(b"\n") else file.readline()))
    return _Form(True, width, words, peeked)


def _is_text(line: bytes) -> bool:
    """Whether numbers follow its first word; the bytes of 32-bit values are no such thing."""
    try:
        return any(_are_numbers([cell]) for cell in line.decode().split()[1:])
    except UnicodeDecodeError:
        return False


def _chained(first: bytes, file: _Bytes) -> Iterator[bytes]:
    yield from first.removesuffix(b"\n").split(b"\n")
    yield from file


def _text_row(raw: bytes, path: Path, line: int, width: int, wanted: Container[str] | None) -> _Row:
    cells = _decoded(raw, path, line).rstrip("\r\n ").split(" ")
    extra = len(cells) - width - 1
    if extra < 0 or (extra > 0 and _are_numbers(cells[1 : extra + 1])):
        raise DataError(
            f"expected a word and {width} values, found {len(cells) - 1} values", file=path, line=line
        )
    word = " ".join(cells[: extra + 1])
    if wanted is not None and word not in wanted:
        return _Row(line, word, None)
    try:
        values = np.array(cells[extra + 1 :], dtype=np.float32)
    except ValueError:
        bad = next(cell for cell in cells[extra + 1 :] if not _are_numbers([cell]))
        raise DataError(f"expected a number, found {bad!r}", file=path, line=line) from None
    _refuse_endless(values, path, line)
    return _Row(line, word, values)


def _binary_rows(file: _Bytes, path: Path, form: _Form, wanted: Container[str] | None) -> Iterator[_Row]:
    """Words are counted where a text file has lines."""
    size, held, at = 4 * form.width, form.first, 0
    for number in range(1, (form.words or 0) + 1):
        while (blank := held.find(b" ", at)) < 0 or len(held) < blank + 1 + size:
            if blank < 0 and len(held) - at > _LONGEST_WORD:
                raise DataError(f"word {number} does not end: this is no file of vectors", file=path)
            more = file.read(1 << 20)
            if not more:
                raise DataError(
                    f"ends in the middle of word {number}, but its first line says {form.words:,} words "
                    f"of {form.width} values: it is not complete",
                    file=path,
                )
            held, at = held[at:] + more, 0
        word = _decoded(held[at:blank].lstrip(b"\n"), path, number)
        values = None
        if wanted is None or word in wanted:
            values = np.frombuffer(held, "<f4", form.width, blank + 1).astype(np.float32)
            _refuse_endless(values, path, number)
        at = blank + 1 + size
        yield _Row(number, word, values)
    if (held[at:] + file.read(1 << 10)).strip(b"\n"):
        raise DataError(f"goes on after the {form.words:,} words its first line says", file=path)


def _decoded(raw: bytes, path: Path, line: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"not valid UTF-8: 0x{raw[error.start]:02x}", file=path, line=line) from None


def _refuse_endless(values: np.ndarray, path: Path, line: int) -> None:
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise DataError(f"expected numbers, found {bad}", file=path, line=line)


def _are_numbers(cells: Iterable[str | bytes]) -> bool:
    try:
        for cell in cells:
            float(cell)
    except ValueError:
        return False
    return True
