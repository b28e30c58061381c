"""A model as a folder for CTranslate2, and a copy of it that a run keeps for itself."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

from regard.core.errors import UsageError
from regard.data.lexicon import Lexicon
from regard.interop.aside import written_aside
from regard.interop.ctranslate2_specs import InexpressibleError, TheirSpec, their_model
from regard.models.model import ModelSpec
from regard.training import durable

KEPT = "ctranslate2"
"""Folder inside a run; below it one for the weights that were converted, named by their checksum."""
FORMAT = 1
"""Of what we make of a model: a higher number makes older copies stale."""


def write_model(made: TheirSpec, folder: Path, quantization: str | None = None) -> None:
    """Everything that ``ctranslate2.Translator``, ``Generator`` or ``Encoder`` loads."""
    made.validate()
    made.optimize(quantization)
    made.save(str(folder))


def kept_copy(run: Path, seal: str, make: Callable[[], TheirSpec]) -> Path:
    """The run's weights, whose checksum is ``seal``, converted once; copies of older weights are removed."""
    place = run / KEPT
    current = place / f"{seal[:16]}-{FORMAT}"
    if current.exists():
        return current
    try:
        with written_aside(current) as aside:
            write_model(make(), aside)
    except InexpressibleError:
        raise
    except UsageError:
        if not current.exists():  # otherwise someone else was faster
            raise
    for other in place.iterdir():
        if other != current and not other.name.startswith("."):
            shutil.rmtree(other, ignore_errors=True)
    return current


def export_model(model: ModelSpec, lexicon: Lexicon, weights: Mapping[str, Tensor], target: Path) -> None:
    """A folder for others, with the vocabulary's own file beside it."""
    try:
        with written_aside(target) as aside:
            write_model(their_model(model, lexicon, weights), aside)
            for name, content in lexicon.files().items():
                durable.write_synced(aside / name, content)
    except UsageError as error:
        raise UsageError(f"CTranslate2 cannot run this model: {error}") from None
