"""Files that survive a kill, a full disk and a flipped bit.

*Replaced* files go to a temporary neighbour, are synced, then renamed: at any moment a reader finds the old
file or the new one. *Sealed* files carry their own sha256 (of themselves, its 64 digits written as zeros), so
that file and checksum can never be of two different ages.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from regard.core.errors import RunError, TrainingError

Write: TypeAlias = Callable[[Path, bytes], None]

UNSEALED = "0" * 64
_SEAL = re.compile(rb'"sha256": ?"([0-9a-f]{64})"')
# Writers put the seal first; looking further would mean searching through all weights.
_SEAL_WITHIN = 4096


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in ``folder``; a rename is not durable before that."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes, write: Write = write_synced) -> None:
    """Put ``content`` at ``path`` in one piece or not at all."""
    temporary = path.with_name(f".{path.name}.writing")
    try:
        write(temporary, content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def said_clearly(path: Path, still_good: str) -> Iterator[None]:
    """Turn a failure to write into a message that says what failed, why, and what is unharmed."""
    try:
        yield
    except OSError as error:
        cause = error.strerror or str(error)
        raise TrainingError(f"{path}: cannot be written: {cause}; {still_good}") from error


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def seal(content: bytes) -> bytes:
    """Fill in the checksum of ``content``, which holds ``"sha256": UNSEALED`` near its start."""
    start, end, stored = _find_seal(content) or (0, 0, "")
    assert stored == UNSEALED, "the place of the seal must be there and empty"
    return content[:start] + _sealed_digest(content, start, end).encode() + content[end:]


def read_sealed(path: Path) -> bytes:
    """The content of a sealed file, or a RunError that names it."""
    content = read_bytes(path)
    found = _find_seal(content)
    if found is None:
        raise RunError(f"{path}: damaged or not written by regard: it carries no readable checksum")
    start, end, stored = found
    actual = _sealed_digest(content, start, end)
    if actual != stored:
        raise RunError(
            f"{path}: damaged: its content has sha256 {actual[:12]}…, but {stored[:12]}… was written"
        )
    return content


def seal_of(path: Path) -> str:
    """The checksum that a sealed file carries, without reading the rest of it."""
    try:
        with path.open("rb") as file:
            found = _find_seal(file.read(_SEAL_WITHIN))
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from None
    if found is None:
        raise RunError(f"{path}: damaged or not written by regard: it carries no readable checksum")
    return found[2]


def read_checked(path: Path, size: int, sha256: str) -> bytes:
    """The content of a file whose size and checksum are known from elsewhere."""
    content = read_bytes(path)
    if len(content) != size:
        raise RunError(f"{path}: damaged: it has {len(content)} bytes, but {size} were written")
    if (actual := digest(content)) != sha256:
        raise RunError(f"{path}: damaged: it has sha256 {actual[:12]}…, but {sha256[:12]}… was written")
    return content


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise RunError(f"{path}: missing") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from None


def _find_seal(content: bytes) -> tuple[int, int, str] | None:
    match = _SEAL.search(content, 0, _SEAL_WITHIN)
    return None if match is None else (match.start(1), match.end(1), match[1].decode())


def _sealed_digest(content: bytes, start: int, end: int) -> str:
    view = memoryview(content)
    total = hashlib.sha256(view[:start])
    total.update(UNSEALED.encode())
    total.update(view[end:])
    return total.hexdigest()
