"""Which engine answers, and why: the fastest that can do the same."""

import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from regard.core.errors import UsageError, nearest
from regard.data.lexicon import Lexicon
from regard.data.shortlists import Shortlist
from regard.engines.layout import Layouts, Precision, for_states
from regard.models.model import ModelSpec
from regard.tasks.engine import Engines

if TYPE_CHECKING:
    from regard.interop.ctranslate2_folder import VocabularyMap

Wanted = Literal["auto", "torch", "ctranslate2"]
_LARGE = 2**24
"""Weights that no cache holds."""


def wanted_engine(name: str) -> Wanted:
    return _one_of(name, "--engine", get_args(Wanted))  # type: ignore[return-value]


def wanted_precision(name: str) -> Precision:
    return _one_of(name, "--precision", get_args(Precision))  # type: ignore[return-value]


def _one_of(name: str, option: str, options: tuple[str, ...]) -> str:
    if name not in options:
        raise UsageError(f"{option} {name}: there is no such one{nearest(name, options)}")
    return name


class Listed(NamedTuple):
    """A shortlist."""

    shortlist: Shortlist
    seal: str
    """Its checksum."""


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
    listed: Listed | None = None
    """Given where answers shall consist of what is on it."""


def choose(wanted: Wanted, precision: Precision, run: Candidate) -> Engines:
    """One that answers from a shortlist, where there is one; no other does."""
    chosen = _chosen(wanted, precision, run)
    if run.listed is not None and chosen.engine is None:
        reason = "not with --engine torch" if wanted == "torch" else chosen.reason
        raise UsageError(f"--shortlist: only CTranslate2 answers from one: {reason}")
    return chosen


def _chosen(wanted: Wanted, precision: Precision, run: Candidate) -> Engines:
    if wanted == "torch":
        return Engines(reason="as asked")
    if run.device.type != "cpu":
        return _none(wanted, f"tensors are on {run.device.type}")
    if find_spec("ctranslate2") is None:
        return _none(wanted, 'ctranslate2 is not installed (pip install "ctranslate2>=4.6")')
    if (kind := run.model.kind() or "") not in _SERVED:
        return _none(wanted, f"a model of kind {kind!r} is not served by another program")
    from regard.interop.ctranslate2_words import InexpressibleError

    way = _SERVED[kind]
    try:
        way.make(run)
        words = None if run.listed is None else _words(run, run.listed)
    except InexpressibleError as error:
        return _none(wanted, str(error))
    return way.engines(run, precision, lambda: _folder(run, way, words))


def _none(wanted: Wanted, reason: str) -> Engines:
    if wanted != "auto":
        raise UsageError(f"--engine {wanted}: cannot answer for this run: {reason}")
    return Engines(reason=reason)


class Way(NamedTuple):
    """How a kind of model is served."""

    make: Callable[[Candidate], Any]
    """The model in the terms of CTranslate2."""
    engines: Callable[[Candidate, Precision, Callable[[], Path]], Engines]
    """Who answers with it, once it is in the folder."""


def _whole(run: Candidate) -> Any:
    from regard.interop.ctranslate2_specs import their_model

    return their_model(run.model, run.lexicon, run.weights)


def _what_reads(run: Candidate) -> Any:
    from regard.interop.ctranslate2_specs import their_reader

    return their_reader(run.model, run.lexicon, run.weights)


def _translating(run: Candidate, precision: Precision, folder: Callable[[], Path]) -> Engines:
    from regard.engines.served import Shortlisted, Translators
    from regard.interop.ctranslate2_weights import POSITIONS

    kind = Translators if run.listed is None else Shortlisted
    return _searching(run, precision, folder, kind(run.lexicon["source"], run.lexicon["target"], POSITIONS))


def _words(run: Candidate, listed: Listed) -> "VocabularyMap":
    from regard.interop.ctranslate2_folder import vocabulary_map

    return vocabulary_map(listed.shortlist, run.lexicon["source"], run.lexicon["target"], listed.seal)


def _continuing(run: Candidate, precision: Precision, folder: Callable[[], Path]) -> Engines:
    from regard.engines.served import Generators
    from regard.interop.ctranslate2_specs import positions_of

    tokenizer, positions = run.lexicon["text"], positions_of(run.model.reader().embedding)
    return _searching(run, precision, folder, Generators(tokenizer, tokenizer, positions))


def _searching(run: Candidate, precision: Precision, folder: Callable[[], Path], served: Any) -> Engines:
    from regard.engines.budgets import Budgets
    from regard.engines.ctranslate2 import Searching
    from regard.engines.notes import Notes
    from regard.interop.ctranslate2_folder import KEPT

    large = sum(weight.numel() for weight in run.weights.values()) > _LARGE
    notes = Notes(run.path / KEPT / "layouts.json")
    layouts = Layouts(precision, notes, large=large, manner=served.manner)
    searching = Searching(folder, served, layouts, Budgets(served.budgets, notes, layouts.key))
    return Engines(searching=searching, reason="it gives no states of models that write")


def _reading(run: Candidate, precision: Precision, folder: Callable[[], Path]) -> Engines:
    from regard.engines.ctranslate2 import Reading

    return Engines(
        reading=Reading(folder, *for_states(precision)), reason="it writes nothing with a model that reads"
    )


_SERVED: dict[str, Way] = {
    "sequence_to_sequence": Way(_whole, _translating),
    "language_model": Way(_whole, _continuing),
    "reader": Way(_what_reads, _reading),
    "masked": Way(_what_reads, _reading),
    "labeller": Way(_what_reads, _reading),
    "detector": Way(_what_reads, _reading),
}


def _folder(run: Candidate, way: Way, words: "VocabularyMap | None") -> Path:
    from regard.interop.ctranslate2_folder import kept_copy

    try:
        return kept_copy(run.path, run.seal, lambda: way.make(run), words)
    except UsageError:  # a run that nobody may write to: a copy for this once
        return _copy_for_once(run, way, words)


_passing: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that go with the process."""


def _copy_for_once(run: Candidate, way: Way, words: "VocabularyMap | None") -> Path:
    from regard.interop.ctranslate2_folder import write_model

    _passing.append(tempfile.TemporaryDirectory(prefix="regard-"))
    folder = Path(_passing[-1].name)
    write_model(way.make(run), folder)
    if words is not None:
        words.write(folder)
    return folder
