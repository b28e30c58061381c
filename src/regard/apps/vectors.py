"""Tables of words that start from vectors: of a file, or of a run that has some."""

import json
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from regard.apps.session import load
from regard.core.errors import UsageError
from regard.data.data import PreparedData
from regard.data.tokenizers import Tokenizer
from regard.data.words import names_of
from regard.interop.vector_files import VectorFile, read_vectors, width_of
from regard.interop.word_vectors import table_of, vectors_of
from regard.recipes.system import SystemSpec
from regard.training.run_folder import RunFolder


class Coverage(NamedTuple):
    """How much of a vocabulary has a vector, and how much of the training text that is."""

    field: str
    source: str
    width: int
    words: int
    covered: int
    lowered: int
    """Those of the covered that were found only in small letters."""
    tokens: float | None
    """Share of the training tokens that are covered words; None where they are not counted."""

    def summary(self) -> str:
        share = self.covered / max(1, self.words)
        lowered = f", {self.lowered:,} of them in small letters" if self.lowered else ""
        tokens = "" if self.tokens is None else f"; {self.tokens:.1%} of the training tokens"
        return (
            f"{self.source}: {self.covered:,} of {self.words:,} {self.field} words ({share:.1%}{lowered})"
            f"{tokens}; {self.width} wide"
        )


@runtime_checkable
class CountsTokens(Protocol):
    def token_counts(self, field: str) -> Int[np.ndarray, "vocabulary"]:
        """How often each token occurs in the training data."""


@runtime_checkable
class MeetsWords(Protocol):
    def meet(self, counts: Int[np.ndarray, "vocabulary"]) -> None:
        """Learn how often each token occurs."""


def introduce(model: nn.Module, prepared: PreparedData) -> None:
    """Tell a model that has to know it before it learns how often words occur."""
    if isinstance(model, MeetsWords):
        assert isinstance(prepared, CountsTokens), "its data can be counted"
        model.meet(prepared.token_counts("text"))


def asked_vectors(given: Sequence[str], spec: SystemSpec) -> list[str]:
    """``--vectors FILE`` is of the first field, ``--vectors target=FILE`` of the one it names."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if equals and name in spec.data.fields:
            found[name] = path
        else:
            found[spec.data.fields[0]] = one
    return [f"vectors={json.dumps(found)}"] if found else []


def with_room(spec: SystemSpec, chosen: Sequence[str], free: bool) -> SystemSpec:
    """The spec whose tables are as wide as its vectors.

    A width nobody has chosen follows the vectors; one that a person set (``chosen`` are the settings; not
    ``free``: the whole spec is a person's) must be theirs.
    """
    for field, path in spec.vectors.items():
        if field not in spec.model.tables:
            raise UsageError(
                f"vectors for {field!r}: a model of kind {spec.model.kind()!r} has tables of "
                f"{', '.join(spec.model.tables) or 'nothing'}"
            )
        width, own = _width(Path(path)), spec.model.own_width(field)
        if own == 0:
            raise UsageError(
                f"vectors for {field!r}: nothing of a vector is the word's own here, all is spelled"
            )
        if width == own:
            continue
        where = "model." + spec.model.tables[field].removesuffix(".tokens")
        said = [one for one in chosen if one.startswith(("model=", where, "model.width"))]
        if said or not free:
            asked = f" (--set {said[-1]})" if said else ""
            raise UsageError(
                f"{path}: its vectors are {width} wide, but {where} has room for {own}{asked}: give vectors "
                f"of {own}, or leave the width to them"
            )
        spec = spec.model_copy(update={"model": spec.model.with_own_width(field, width)})
    return spec


def start_tables(model: nn.Module, spec: SystemSpec, prepared: PreparedData) -> list[Coverage]:
    """Put vectors where the vocabulary has their word; all other rows stay as they are."""
    return [
        _start_table(
            table_of(model, spec.model, field),
            Path(path),
            prepared.lexicon[field],
            field,
            prepared.token_counts(field) if isinstance(prepared, CountsTokens) else None,
        )
        for field, path in spec.vectors.items()
    ]


@torch.no_grad()
def _start_table(
    table: nn.Embedding, path: Path, tokenizer: Tokenizer, field: str, counts: np.ndarray | None
) -> Coverage:
    names = {number: word for number, word in enumerate(names_of(tokenizer)) if word is not None}
    wanted = {form for word in names.values() for form in (word, word.lower())}
    words, vectors = _vectors(path, wanted)
    rows = {word: row for row, word in enumerate(words)}
    exact = {number: rows[word] for number, word in names.items() if word in rows}
    lowered = {
        number: rows[word.lower()]
        for number, word in names.items()
        if number not in exact and word.lower() in rows
    }
    taken = exact | lowered
    if not taken:
        raise UsageError(f"{path}: has none of the {len(names):,} words of this vocabulary")
    numbers = torch.tensor(list(taken), device=table.weight.device)
    table.weight[numbers] = torch.from_numpy(vectors[list(taken.values())]).to(table.weight)
    share = None
    if counts is not None:
        marks = [mark for mark in tokenizer.marks if mark not in (None, tokenizer.unknown)]
        total = counts.sum() - counts[marks].sum()
        share = float(counts[list(taken)].sum() / max(1, total))
    return Coverage(field, str(path), vectors.shape[1], len(names), len(taken), len(lowered), share)


def _width(path: Path) -> int:
    if not RunFolder.holds_run(path):
        return width_of(path)
    return int(_of_run(path).vectors.shape[1])


def _vectors(path: Path, wanted: Container[str]) -> VectorFile:
    return _of_run(path) if RunFolder.holds_run(path) else read_vectors(path, wanted)


def _of_run(path: Path) -> VectorFile:
    run = load(path, device="cpu")
    field = next(iter(run.lexicon))
    return VectorFile(*vectors_of(run.model, run.spec.model, run.lexicon[field], field))
