"""Who may ask, and how often. A key is known by its hash alone; the file never holds a key."""

import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from regard.core.errors import DataError, UsageError
from regard.training.durable import replace_file

_PREFIX = "rg-"
_CLIENTS = 10_000
"""Addresses whose requests are counted at a time."""


class Key(NamedTuple):
    name: str
    sha256: str
    """Keys are 256 random bits: there is nothing a slow hash would protect."""
    per_minute: int | None = None
    created: str = ""


def create_key(file: Path, name: str, per_minute: int | None = None) -> str:
    """A new key, written to ``file`` as its hash and returned once."""
    keys = read_keys(file) if file.exists() else []
    if any(key.name == name for key in keys):
        raise UsageError(f"{file}: there is a key named {name!r} already: remove its line first")
    secret = _PREFIX + secrets.token_urlsafe(32)
    keys.append(Key(name, digest(secret), per_minute, datetime.now(UTC).isoformat(timespec="seconds")))
    content = "".join(json.dumps(key._asdict(), ensure_ascii=False) + "\n" for key in keys)
    replace_file(file, content.encode())
    file.chmod(0o600)
    return secret


def read_keys(file: Path) -> list[Key]:
    keys = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {error}", file=file) from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            key = Key(**json.loads(line))
        except (ValueError, TypeError):
            raise DataError("expected a key as `regard key` writes it", file=file, line=number) from None
        if not (isinstance(key.sha256, str) and len(key.sha256) == 64):
            raise DataError("expected 64 digits", file=file, line=number, field="sha256")
        keys.append(key)
    return keys


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """The keys of a file, read again when it changes: a key that is taken out is refused from then on."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._keys, self._state = read_keys(file), self._state_now()
        self._looked = time.monotonic()

    def owner(self, secret: str | None) -> Key | None:
        if time.monotonic() - self._looked > 1:
            self._look_again()
        given = digest(secret or "")
        found = None
        for key in self._keys:  # all of them, so that time tells nothing
            if hmac.compare_digest(key.sha256, given):
                found = key
        return found if secret else None

    def _look_again(self) -> None:
        self._looked = time.monotonic()
        if (state := self._state_now()) != self._state:
            try:
                self._keys = read_keys(self.file)
            except DataError:  # half written, or gone: what was allowed stays so until it can be read
                return
            self._state = state

    def _state_now(self) -> tuple[int, int] | None:
        try:
            stat = self.file.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size


class Rates:
    """Requests a minute of each client: a bucket that fills evenly and holds a minute's worth."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, per_minute: int, now: float | None = None) -> float:
        """Seconds until the client may come again; 0 if it may come now, and then it counts."""
        now = time.monotonic() if now is None else now
        level, then = self._buckets.pop(client, (float(per_minute), now))
        level = min(float(per_minute), level + (now - then) * per_minute / 60)
        wait = 0.0 if level >= 1 else (1 - level) * 60 / per_minute
        self._buckets[client] = (level - 1 if level >= 1 else level, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return wait
