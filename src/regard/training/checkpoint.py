"""Checkpoints: everything needed to go on, in a folder that is complete or not there.

A checkpoint holds weights, optimiser, averages and carried state as safetensors, scalars as JSON, and
``manifest.json`` with size and sha256 of each, written last. Two generations are kept; nothing is ever
unpickled.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from regard.core.errors import RunError
from regard.core.spec import Plain
from regard.training import durable
from regard.training.weights import from_bytes, to_bytes

MANIFEST = "manifest.json"
STATE = "state.json"
TENSORS = ("weights", "optimiser", "averages", "carried")


class Checkpoint(NamedTuple):
    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    averages: dict[str, Tensor]
    """Moving average of the weights; empty when none is kept."""
    carried: dict[str, Tensor]
    """What the last batch left for the next, in its order; empty where batches stand alone."""
    state: dict[str, Plain]
    """Step, position in the data, best value, patience: all that is not a tensor."""


def write(folder: Path, checkpoint: Checkpoint, write_file: durable.Write = durable.write_synced) -> None:
    """Write into the new ``folder``; it is a checkpoint as soon as its manifest is there."""
    folder.mkdir(parents=True)
    contents = {f"{name}.safetensors": to_bytes(getattr(checkpoint, name)) for name in TENSORS}
    contents[STATE] = json.dumps(checkpoint.state, indent=1).encode()
    manifest: dict[str, Any] = {"sha256": durable.UNSEALED, "files": {}}
    for name, content in contents.items():
        write_file(folder / name, content)
        manifest["files"][name] = {"size": len(content), "sha256": durable.digest(content)}
    write_file(folder / MANIFEST, durable.seal(json.dumps(manifest, indent=1).encode()))
    durable.sync_folder(folder)


def read(folder: Path) -> Checkpoint:
    """Read and verify every file; what is damaged is refused by name."""
    manifest = json.loads(durable.read_sealed(folder / MANIFEST))
    contents = {
        name: durable.read_checked(folder / name, entry["size"], entry["sha256"])
        for name, entry in manifest["files"].items()
    }
    tensors = {
        name: from_bytes(contents[file], folder / file) if (file := f"{name}.safetensors") in contents else {}
        for name in TENSORS
    }
    return Checkpoint(state=json.loads(contents[STATE]), **tensors)


class Generations:
    """The last two checkpoints of a run: ``last`` and, should it be damaged, ``previous``."""

    def __init__(self, folder: Path, write_file: durable.Write = durable.write_synced) -> None:
        self.last, self.previous = folder / "last", folder / "previous"
        self._folder = folder
        self._write_file = write_file
        self._new, self._discarded = folder / ".writing", folder / ".discarded"
        self._last_is_damaged = False

    def exist(self) -> bool:
        return self.last.exists() or self.previous.exists()

    def clean(self) -> None:
        """Remove what a killed process left half done."""
        for leftover in (self._new, self._discarded):
            shutil.rmtree(leftover, ignore_errors=True)

    def write(self, checkpoint: Checkpoint) -> None:
        """Make ``checkpoint`` the last one. Killed at any moment, a whole checkpoint is still there."""
        self.clean()
        before = (
            f"the checkpoint before it still loads ({self.last})" if self.exist() else "nothing was saved yet"
        )
        try:
            with durable.said_clearly(self.last, f"{before}; make room and give the same command again"):
                write(self._new, checkpoint, self._write_file)
                self._shift()
        except BaseException:
            shutil.rmtree(self._new, ignore_errors=True)
            raise
        shutil.rmtree(self._discarded, ignore_errors=True)

    def _shift(self) -> None:
        # A folder cannot be renamed onto another, so one steps aside first: the oldest, or the damaged one.
        if self._last_is_damaged:
            self.last.rename(self._discarded)
        elif self.last.exists():
            if self.previous.exists():
                self.previous.rename(self._discarded)
            self.last.rename(self.previous)
        self._new.rename(self.last)
        self._last_is_damaged = False
        durable.sync_folder(self._folder)

    def read(self) -> tuple[Checkpoint, str | None]:
        """The newest good checkpoint, and a sentence if a newer one had to be given up."""
        if not self.last.exists():  # killed between the two renames: nothing is damaged
            return read(self.previous), None
        try:
            return read(self.last), None
        except RunError as error:
            damage = error
        try:
            older = read(self.previous)
        except RunError as error:
            raise RunError(f"both checkpoints are unusable: {damage}; {error}") from None
        self._last_is_damaged = True
        return older, f"{damage}; went back to {self.previous}"
