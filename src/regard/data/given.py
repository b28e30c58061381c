"""Examples given as files or as they are: what they are called, and how they are told from others."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def name_of(given: Any, otherwise: str) -> str:
    """The files among what was given; ``otherwise`` where there are none."""
    if isinstance(given, str | Path):
        return str(given)
    paths = [str(row) for row in given if isinstance(row, str | Path)] if isinstance(given, Sequence) else []
    return ",".join(paths) or otherwise


def fingerprint_of(*parts: Iterable[tuple[str, ...]]) -> str:
    """Another one for other texts, another order, or the same rows in another part."""
    digest = hashlib.sha256()
    for rows in parts:
        for row in rows:
            digest.update("\x1f".join((*row, "\x1d")).encode())
        digest.update(b"\x1c")
    return digest.hexdigest()
