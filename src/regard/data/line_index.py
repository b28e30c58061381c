"""Where the lines of a large file are, so that any of them can be read without those before it.

Only the place of every ``BLOCK``-th line is known: eight bytes for 256 lines. The whole file is read once for
that, and hashed on the way; both are kept in the cache folder until the file changes.
"""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from regard.core.errors import DataError, RunError
from regard.data.lines import Line, line_of, open_bytes
from regard.data.store import write_atomically

BLOCK = 256
"""Lines between two known places: what is read at once, and stays together when lines are shuffled."""
_CHUNK = 1 << 22
_LINE_FEED = 10
_MAGIC = b"regard lines 1\n\0"
_HEADER = struct.Struct("<16s32sqq")  # magic, digest of the content, lines, known places


class LineIndex:
    """The lines of a file, numbered from 0: ``read`` gives any of them."""

    def __init__(self, path: Path, starts: np.ndarray, lines: int, digest: bytes) -> None:
        self.path, self.lines, self.digest = path, lines, digest
        self._starts = starts
        """Where each block begins, and where the last one ends."""

    @classmethod
    def of(cls, path: Path, cache: Path | None) -> "LineIndex":
        """From the cache if the file (its place, size and time of change) is known there."""
        kept = None if cache is None else cache / f"{_identity(path)}.lines"
        index = None if kept is None else cls._recall(path, kept)
        if index is None:
            index = cls._scan(path)
            if kept is not None:
                index._keep(kept)
        return index

    @property
    def blocks(self) -> int:
        return len(self._starts) - 1

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return int(self._starts[-1])

    @property
    def nbytes(self) -> int:
        """What the index itself takes in memory."""
        return self._starts.nbytes

    def read(self, begin: int, end: int) -> list[Line]:
        """Lines ``begin`` to ``end`` (not included) with their numbers for people, which count from 1."""
        first, last = begin // BLOCK, -(-end // BLOCK)
        start, stop = int(self._starts[first]), int(self._starts[last])
        with open_bytes(self.path) as file:
            file.seek(start)
            found = file.read(stop - start).split(b"\n")
        if not found[-1]:
            found.pop()
        if len(found) != min(last * BLOCK, self.lines) - first * BLOCK:
            raise DataError(
                "the file has changed since its lines were counted", file=self.path, line=begin + 1
            )
        before = first * BLOCK
        name = str(self.path)
        return [
            line_of(raw, name, number)
            for number, raw in enumerate(found[begin - before : end - before], start=begin + 1)
        ]

    @classmethod
    def _scan(cls, path: Path) -> "LineIndex":
        digest = hashlib.blake2b(digest_size=32)
        starts, lines, place, complete = [np.zeros(1, dtype=np.int64)], 0, 0, True
        with open_bytes(path) as file:
            for chunk in _chunks(file):
                digest.update(chunk)
                ends = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == _LINE_FEED)
                # After the end of line n (counted from 0) line n + 1 begins: wanted is every BLOCK-th.
                starts.append(place + ends[(-lines - 1) % BLOCK :: BLOCK] + 1)
                lines += len(ends)
                place += len(chunk)
                complete = chunk.endswith(b"\n")
        if place == 0:
            raise DataError("the file is empty", file=path)
        known = np.concatenate(starts)
        # A last line without line feed is a line; a block that begins where the file ends is none.
        return cls(path, np.append(known[known < place], place), lines + (not complete), digest.digest())

    @classmethod
    def _recall(cls, path: Path, kept: Path) -> "LineIndex | None":
        try:
            content = kept.read_bytes()
            magic, digest, lines, known = _HEADER.unpack_from(content)
        except (OSError, struct.error):
            return None
        if magic != _MAGIC or len(content) != _HEADER.size + 8 * known or known != -(-lines // BLOCK) + 1:
            return None
        return cls(path, np.frombuffer(content, dtype=np.int64, offset=_HEADER.size), lines, digest)

    def _keep(self, kept: Path) -> None:
        header = _HEADER.pack(_MAGIC, self.digest, self.lines, len(self._starts))
        # Where nothing can be kept, the file is read again next time: slower, not worse.
        with suppress(OSError, RunError):
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(kept, header + self._starts.tobytes())


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _identity(path: Path) -> str:
    """Tells a file from others and from what it was before, without reading it."""
    there = path.stat()
    known = f"{path.resolve()}\n{there.st_size}\n{there.st_mtime_ns}\n{BLOCK}"
    return hashlib.sha256(known.encode()).hexdigest()[:20]
