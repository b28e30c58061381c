"""A folder that appears complete or not at all."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.core.errors import UsageError
from regard.training import durable


@contextmanager
def written_aside(target: Path) -> Iterator[Path]:
    """A neighbour of ``target`` to write into; it takes that name once everything is there.

    Whatever goes wrong, nothing is left behind, and a target that holds something is never touched.
    """
    refuse_occupied(target)
    aside = target.absolute().with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.writing")
    try:
        aside.mkdir(parents=True)
        yield aside
        durable.sync_folder(aside)
        if target.exists():
            target.rmdir()  # it was empty; one that is not any more refuses
        aside.rename(target)
        durable.sync_folder(target.absolute().parent)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def refuse_occupied(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target}: is a file; a folder is to be written here")
    if target.exists() and (found := sorted(item.name for item in target.iterdir())):
        raise UsageError(f"{target}: is not empty (it holds {', '.join(found[:5])}); left untouched")
