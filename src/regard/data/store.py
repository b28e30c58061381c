"""Rows of token ids as one flat array and the places where rows begin.

Small corpora stay in memory. A corpus that outgrows ``memory_limit`` while it is being written goes to a file
that is mapped, not read: the operating system keeps in memory what training touches. A file appears under its
name only when it is complete, and one that is not exactly as long as its header says is not opened.
"""

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
import torch

from regard.core.errors import RunError
from regard.core.sequences import Tokens

_MAGIC = b"regard rows 1\n\0\0"
_HEADER = struct.Struct("<16s32s8sqq")  # magic, fingerprint, element type, rows, elements
_START = 128
_TYPES = {b"uint8": np.uint8, b"uint16": np.uint16, b"int32": np.int32}


def element_type(vocabulary: int) -> type[np.unsignedinteger | np.signedinteger]:
    """The smallest type that holds every id."""
    return np.uint16 if vocabulary <= 1 << 16 else np.int32


class TokenStore:
    """``store[i]`` is row i; ``offsets`` has one entry more than there are rows."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        assert int(offsets[-1]) == len(values), "offsets end where the values end"
        self.values, self.offsets = values, offsets
        self.lengths: np.ndarray = np.diff(offsets).astype(np.int32)

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | np.ndarray], vocabulary: int) -> "TokenStore":
        """A store in memory."""
        arrays = [np.asarray(row, dtype=element_type(vocabulary)) for row in rows]
        lengths = np.asarray([len(row) for row in arrays], dtype=np.int64)
        values = np.concatenate(arrays) if arrays else np.zeros(0, dtype=element_type(vocabulary))
        return cls(values, np.concatenate(([0], np.cumsum(lengths))))

    @classmethod
    def open(cls, path: Path, fingerprint: bytes) -> "TokenStore | None":
        """The store in a file; None if it is missing, torn, or made from something else."""
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                magic, made_from, name, rows, elements = _HEADER.unpack(file.read(_HEADER.size))
        except (OSError, struct.error):
            return None
        kind = _TYPES.get(name.rstrip(b"\0"))
        if magic != _MAGIC or made_from != fingerprint or kind is None or rows < 0 or elements < 0:
            return None
        begin_offsets = _aligned(_START + elements * np.dtype(kind).itemsize)
        if size != begin_offsets + (rows + 1) * 8:
            return None
        values = np.memmap(path, kind, "r", _START, (elements,)) if elements else np.zeros(0, kind)
        offsets = np.memmap(path, np.int64, "r", begin_offsets, (rows + 1,))
        return cls(values, offsets) if int(offsets[-1]) == elements else None

    @property
    def mapped(self) -> bool:
        return isinstance(self.values, np.memmap)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return np.asarray(self.values[self.offsets[row] : self.offsets[row + 1]])

    def padded(self, rows: np.ndarray, padding: int, begin: int | None, end: int) -> Tokens:
        """Rows side by side: [begin] + row + [end], then padding."""
        shift = 0 if begin is None else 1
        lengths = self.lengths[rows].astype(np.int64)
        columns = np.arange(int(lengths.max(initial=0)) + shift + 1)
        ids = np.full((len(rows), len(columns)), padding, dtype=np.int64)
        starts = np.asarray(self.offsets[rows])
        before = np.cumsum(lengths) - lengths
        flat = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
        body = (columns >= shift) & (columns < (lengths + shift)[:, None])
        ids[body] = self.values[flat]
        ids[np.arange(len(rows)), lengths + shift] = end
        if begin is not None:
            ids[:, 0] = begin
        real = columns < (lengths + shift + 1)[:, None]
        return Tokens(torch.from_numpy(ids), torch.from_numpy(real))


class StoreWriter:
    """Takes rows one block at a time; moves to ``path`` once they outgrow ``memory_limit`` bytes."""

    def __init__(self, kind: type[np.generic], memory_limit: int, path: Path, fingerprint: bytes) -> None:
        self._kind, self._limit, self._path, self._fingerprint = kind, memory_limit, path, fingerprint
        self._blocks: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._held = 0
        self._elements = 0
        self._file: IO[bytes] | None = None

    def add(self, rows: Sequence[Sequence[int] | np.ndarray]) -> None:
        if not rows:
            return
        block = np.concatenate([np.asarray(row, dtype=self._kind) for row in rows])
        self._lengths.append(np.asarray([len(row) for row in rows], dtype=np.int32))
        self._elements += len(block)
        if self._file is not None:
            with _writing(self._path):
                self._file.write(block.tobytes())
            return
        self._blocks.append(block)
        self._held += block.nbytes
        if self._held > self._limit:
            self._spill()

    def finish(self) -> TokenStore:
        lengths = np.concatenate(self._lengths) if self._lengths else np.zeros(0, np.int32)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        if self._file is None:
            values = np.concatenate(self._blocks) if self._blocks else np.zeros(0, self._kind)
            return TokenStore(values, offsets)
        name = np.dtype(self._kind).name.encode()
        with _writing(self._path):
            self._file.seek(_aligned(_START + self._elements * np.dtype(self._kind).itemsize))
            self._file.write(offsets.tobytes())
            self._file.seek(0)
            self._file.write(_HEADER.pack(_MAGIC, self._fingerprint, name, len(lengths), self._elements))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self._path)
        store = TokenStore.open(self._path, self._fingerprint)
        assert store is not None, "a store that was just written opens"
        return store

    def discard(self) -> None:
        """Leave nothing behind; harmless after ``finish``."""
        if self._file is not None:
            self._file.close()
            self._temporary.unlink(missing_ok=True)

    @property
    def _temporary(self) -> Path:
        return _temporary(self._path)

    def _spill(self) -> None:
        with _writing(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _clear_abandoned(self._path)
            self._file = self._temporary.open("wb")
            self._file.seek(_START)
            for block in self._blocks:
                self._file.write(block.tobytes())
        self._blocks.clear()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_atomically(path: Path, content: str | bytes) -> None:
    """A file that is there completely or not at all; text as UTF-8."""
    temporary = _temporary(path)
    with _writing(path):
        try:
            with temporary.open("wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _clear_abandoned(path: Path) -> None:
    """Remove what processes that are no more left unfinished."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        if not Path(f"/proc/{left.suffixes[-2][1:]}").exists() and Path("/proc/self").exists():
            left.unlink(missing_ok=True)


def _aligned(place: int) -> int:
    return -(-place // 8) * 8
