"""A run on disk: what it is, its best weights, its log and its checkpoints.

    regard.json          what the run is; sealed, written once
    <files>              tokenizers and the like; their checksums are in regard.json
    model.safetensors    best weights so far; sealed, replaced in one piece
    shortlist.safetensors  which tokens answers may consist of, where that was learned; sealed as well
    log.jsonl            one event a line
    checkpoints/         last/, previous/, validated/

``model.safetensors`` carries its own checksum, so no second file can disagree with it after a kill.
"""

import errno
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from regard.core.errors import RunError, UsageError
from regard.core.spec import Plain, Spec, diff
from regard.training import durable, weights
from regard.training.checkpoint import Generations

FORMAT = 1
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From format n to n + 1. None yet: format 1 is the first."""

RECORD, MODEL, LOG = "regard.json", "model.safetensors", "log.jsonl"
SHORTLIST = "shortlist.safetensors"
_CREATING = ".creating"


class Record(NamedTuple):
    """What ``regard.json`` says."""

    spec: dict[str, Plain]
    seed: int
    fingerprint: str
    """Of the training data."""
    versions: dict[str, str]
    files: dict[str, dict[str, Any]]
    """Size and sha256 of each file that belongs to the run beside its weights."""


class RunFolder:
    """An opened run. Make one with ``create`` or ``open``."""

    def __init__(self, path: Path, record: Record, write_file: durable.Write = durable.write_synced) -> None:
        self.path, self.record = path, record
        self.checkpoints = Generations(path / "checkpoints", write_file)
        self._write_file = write_file

    @staticmethod
    def holds_run(path: Path) -> bool:
        return (path / RECORD).exists()

    @classmethod
    def create(
        cls,
        path: Path,
        spec: Spec,
        seed: int,
        fingerprint: str,
        files: Mapping[str, bytes],
        may_differ: Sequence[str] = (),
    ) -> "RunFolder":
        """A new run, or the same run opened again; a different one is refused with the differences.

        ``may_differ`` names spec fields (``training.steps``) that change how long training goes on but
        none of its steps; a new value there is written down.
        """
        if cls.holds_run(path):
            return cls.open(path).continued(spec, seed, fingerprint, may_differ)
        _claim(path)
        sizes = {name: {"size": len(data), "sha256": durable.digest(data)} for name, data in files.items()}
        record = Record(spec.to_dict(), seed, fingerprint, _versions(), sizes)
        for name, data in files.items():
            _write(path / name, data)
        _write_record(path, record)
        (path / _CREATING).unlink()
        return cls(path, record)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        if not cls.holds_run(path):
            what = "there is no such folder" if not path.exists() else f"it holds no {RECORD}"
            raise RunError(f"{path}: not a run: {what}")
        return cls(path, _read_record(path / RECORD))

    def continued(
        self, spec: Spec, seed: int, fingerprint: str, may_differ: Sequence[str] = ()
    ) -> "RunFolder":
        """This run, if it is the one described; otherwise a UsageError that shows what differs."""
        stored = type(spec).from_dict(self.record.spec, where=str(self.path / RECORD))
        changes = diff(stored, spec)
        differences = [
            f"{name} is {there!r} there, {here!r} now"
            for name, there, here in [
                *(change for change in changes if change[0] not in may_differ),
                ("seed", self.record.seed, seed),
                ("fingerprint of the data", self.record.fingerprint, fingerprint),
            ]
            if there != here
        ]
        if differences:
            raise UsageError(
                f"{self.path} holds a different run: {'; '.join(differences)}. "
                "Choose another folder, or give the same settings to go on with this run"
            )
        if not changes:
            return self
        record = self.record._replace(spec=spec.to_dict())
        _write_record(self.path, record)
        return RunFolder(self.path, record, self._write_file)

    def read_file(self, name: str) -> bytes:
        """One of the files the run was created with, verified."""
        entry = self.record.files.get(name)
        if entry is None:
            raise RunError(f"{self.path}: {name} is not part of this run; {', '.join(self.record.files)} are")
        return durable.read_checked(self.path / name, entry["size"], entry["sha256"])

    def verify(self) -> None:
        """Check every file of the run that is needed to use it."""
        for name in self.record.files:
            self.read_file(name)
        self.read_weights()

    def has_weights(self) -> bool:
        return (self.path / MODEL).exists()

    def read_weights(self) -> dict[str, Tensor]:
        return weights.read_weights(self.path / MODEL)

    def seal(self) -> str:
        """Checksum of the best weights, as their file carries it."""
        return durable.seal_of(self.path / MODEL)

    def load_into(self, model: nn.Module) -> None:
        """The best weights into the model they belong to."""
        weights.load_all(model, self.read_weights(), self.path / MODEL)

    def save_weights(self, tensors: Mapping[str, Tensor]) -> None:
        path = self.path / MODEL
        with durable.said_clearly(path, "the weights saved before are still there"):
            durable.replace_file(path, weights.to_bytes(tensors), self._write_file)

    def has_shortlist(self) -> bool:
        return (self.path / SHORTLIST).exists()

    def read_shortlist(self) -> tuple[dict[str, Tensor], str]:
        """As it was saved, and its checksum."""
        path = self.path / SHORTLIST
        return weights.read_weights(path), durable.seal_of(path)

    def save_shortlist(self, tensors: Mapping[str, Tensor]) -> None:
        _write(self.path / SHORTLIST, weights.to_bytes(tensors))

    def clean(self) -> None:
        """Remove what a killed process left half written."""
        self.checkpoints.clean()
        for path in self.path.glob(".*.writing"):
            path.unlink(missing_ok=True)

    def validated_weights(self, step: int) -> Path:
        """Where the weights of a validated step wait to be averaged."""
        return self.path / "checkpoints" / "validated" / f"step-{step:09d}.safetensors"

    def save_validated(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        path = self.validated_weights(step)
        with durable.said_clearly(path, f"the last checkpoint still loads ({self.checkpoints.last})"):
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.replace_file(path, weights.to_bytes(tensors), self._write_file)

    def keep_validated(self, steps: Sequence[int]) -> None:
        """Remove the weights of all validated steps but these."""
        kept = {self.validated_weights(step) for step in steps}
        folder = self.path / "checkpoints" / "validated"
        for path in folder.glob("*") if folder.exists() else ():
            if path not in kept:
                path.unlink(missing_ok=True)

    @property
    def log_path(self) -> Path:
        return self.path / LOG

    def log_size(self) -> int:
        """How much of the log is written, once the disk has it."""
        if not self.log_path.exists():
            return 0
        with self.log_path.open("rb") as log:
            os.fsync(log.fileno())
            return os.fstat(log.fileno()).st_size

    def cut_log(self, size: int) -> None:
        """Forget events after a checkpoint: they will happen again. One system call, so no torn log."""
        if self.log_path.exists() and self.log_path.stat().st_size > size:
            os.truncate(self.log_path, size)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse two trainings in one folder; the lock ends with the process, however it ends."""
        try:
            import fcntl
        except ImportError:  # Windows: nothing to lock a folder with
            yield
            return
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Some network file systems cannot lock at all; that is no reason not to train.
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                os.close(descriptor)
                raise UsageError(f"{self.path}: another process is training in this folder") from None
        try:
            yield
        finally:
            os.close(descriptor)


def load_weights(model: nn.Module, from_run: Path, reader: tuple[str, str] = ("", "")) -> weights.Transfer:
    """Start from another run: take its weights where name and shape fit, and tell the rest.

    ``reader``: the first word of the names of what reads, there and here.
    """
    run = RunFolder.open(from_run)
    return weights.load_matching(model, run.read_weights(), from_run / MODEL, reader)


def _claim(path: Path) -> None:
    """Make an empty folder ours. The marker tells a creation that was killed from someone else's files."""
    marker = path / _CREATING
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: is a file; a run needs a folder")
    if path.exists() and not marker.exists() and (found := sorted(item.name for item in path.iterdir())):
        raise UsageError(
            f"{path}: is not empty and holds no run (it holds {', '.join(found[:5])}); left untouched"
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        durable.write_synced(marker, b"")
    except OSError as error:
        raise UsageError(f"{path}: cannot be created: {error.strerror}") from None


def _write_record(path: Path, record: Record) -> None:
    content = {"sha256": durable.UNSEALED, "format": FORMAT, **record._asdict()}
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    _write(path / RECORD, durable.seal(text.encode()))


def _write(path: Path, content: bytes) -> None:
    try:
        durable.replace_file(path, content)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}") from None


def _read_record(path: Path) -> Record:
    content: dict[str, Any] = json.loads(durable.read_sealed(path))
    found = content.pop("format")
    if found > FORMAT:
        raise RunError(
            f"{path}: written by a newer regard (format {found}; this one reads up to {FORMAT}); upgrade"
        )
    for version in range(found, FORMAT):
        content = MIGRATIONS[version](content)
    del content["sha256"]
    return Record(**content)


def _versions() -> dict[str, str]:
    libraries = {name: metadata.version(name) for name in ("regard", "torch", "tokenizers", "safetensors")}
    return {"python": platform.python_version(), **libraries}
