"""Which engine answers, and why: the fastest that can do the same."""

import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from regard.core.errors import UsageError, nearest
from regard.data.lexicon import Lexicon
from regard.engines.layout import Layouts, Precision
from regard.models.model import ModelSpec
from regard.tasks.engine import Engine

Wanted = Literal["auto", "torch", "ctranslate2"]


def wanted_engine(name: str) -> Wanted:
    return _one_of(name, "--engine", get_args(Wanted))  # type: ignore[return-value]


def wanted_precision(name: str) -> Precision:
    return _one_of(name, "--precision", get_args(Precision))  # type: ignore[return-value]


def _one_of(name: str, option: str, options: tuple[str, ...]) -> str:
    if name not in options:
        raise UsageError(f"{option} {name}: there is no such one{nearest(name, options)}")
    return name


class Choice(NamedTuple):
    engine: Engine | None
    """None: our own steps."""
    reason: str
    """Why it is not another."""


class Candidate(NamedTuple):
    """A run that wants to be answered for."""

    path: Path
    seal: str
    """Checksum of its weights."""
    model: ModelSpec
    lexicon: Lexicon
    weights: Mapping[str, Tensor]
    """Tied ones under all their names."""
    device: torch.device


def choose(wanted: Wanted, precision: Precision, run: Candidate) -> Choice:
    if wanted == "torch":
        return Choice(None, "as asked")
    if run.device.type != "cpu":
        return _none(wanted, f"tensors are on {run.device.type}")
    if find_spec("ctranslate2") is None:
        return _none(wanted, 'ctranslate2 is not installed (pip install "ctranslate2>=4.6")')
    if (kind := run.model.kind() or "") not in _SERVED:
        return _none(wanted, f"a model of kind {kind!r} is not served by another program")
    from regard.interop.ctranslate2_specs import InexpressibleError, their_model

    try:
        their_model(run.model, run.lexicon, run.weights)
    except InexpressibleError as error:
        return _none(wanted, str(error))
    return Choice(_ctranslate2(run, precision), "")


def _none(wanted: Wanted, reason: str) -> Choice:
    if wanted != "auto":
        raise UsageError(f"--engine {wanted}: cannot answer for this run: {reason}")
    return Choice(None, reason)


def _ctranslate2(run: Candidate, precision: Precision) -> Engine:
    from regard.engines.ctranslate2 import CTranslate2
    from regard.interop.ctranslate2_folder import kept_copy

    try:
        folder = kept_copy(run.path, run.seal, run.model, run.lexicon, run.weights)
        notes: Path | None = folder.parent / "layouts.json"
    except UsageError:  # a run that nobody may write to: a copy for this once
        folder, notes = _copy_for_once(run), None
    return CTranslate2(folder, _SERVED[run.model.kind() or ""](run), Layouts(precision, notes))


_passing: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that go with the process."""


def _copy_for_once(run: Candidate) -> Path:
    from regard.interop.ctranslate2_folder import write_model

    _passing.append(tempfile.TemporaryDirectory(prefix="regard-"))
    folder = Path(_passing[-1].name)
    write_model(run.model, run.lexicon, run.weights, folder)
    return folder


def _translators(run: Candidate) -> Any:
    from regard.engines.ctranslate2 import Translators

    return Translators(run.lexicon["source"], run.lexicon["target"], _positions(run.model))


_SERVED: dict[str, Callable[[Candidate], Any]] = {"sequence_to_sequence": _translators}


def _positions(model: Any) -> int:
    from regard.interop.ctranslate2_specs import POSITIONS

    return POSITIONS
