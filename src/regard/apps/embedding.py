"""Vectors of texts and words as people ask for them: ``regard run --embed`` and ``run.embed``."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.core.errors import UsageError, nearest
from regard.parts.pooling import FirstSpec, LastSpec, MaxSpec, MeanSpec, SummingUpSpec
from regard.training.memory import keep_freed_memory

if TYPE_CHECKING:
    from regard.apps.session import Run

POOLINGS: dict[str, dict[str, Any]] = {
    "mean": {"pooling": MeanSpec()},
    "first": {"pooling": FirstSpec()},
    "last": {"pooling": LastSpec()},
    "max": {"pooling": MaxSpec()},
    "mix": {"pooling": MeanSpec(), "layer": None},
    "gist": {"pooling": None},
}
"""How they are called; mix is the mean over all layers and tokens, gist a layer that some models have."""


def summing_up(
    usual: SummingUpSpec, pooling: str | None, normalise: bool | None, layer: int | None
) -> SummingUpSpec:
    """What is usual for a run, and what was asked for instead."""
    changes: dict[str, Any] = {}
    if pooling is not None:
        if pooling not in POOLINGS:
            raise UsageError(f"--pooling {pooling}: there is no such pooling{nearest(pooling, POOLINGS)}")
        changes |= POOLINGS[pooling]
    if layer is not None:
        if changes.get("layer", -1) is None:
            raise UsageError(f"--layer {layer}: --pooling mix takes all layers")
        changes["layer"] = layer
    if normalise is not None:
        changes["normalise"] = normalise
    return usual.model_copy(update=changes)


def print_vectors(
    run: "Run", lines: Iterable[str], summing: SummingUpSpec, words: bool, out: Path | None, truncate: bool
) -> None:
    """A JSON object a line, or all vectors in one ``.npy`` file."""
    keep_freed_memory()  # nothing else happens in this process
    embedder = run.embedder()
    if words and out is not None:
        raise UsageError("--out holds one vector a line: words are printed as JSON")
    if out is not None and out.suffix != ".npy":
        raise UsageError(f"--out {out}: vectors are written as a .npy file")
    if out is not None:
        found = [vector for _, vector in embedder.stream(lines, summing, truncate)]
        np.save(out, np.stack(found) if found else np.zeros((0, 0), np.float32))
        print(f"{out}: {len(found):,} vectors{f' of {len(found[0])}' if found else ''}")
    elif words:
        for number, text in enumerate(lines, start=1):
            (own,) = embedder.words([text], summing, number, truncate)
            shown = [word._asdict() | {"vector": _numbers(word.vector)} for word in own]
            print(json.dumps({"text": text, "words": shown}, ensure_ascii=False), flush=True)
    else:
        for text, vector in embedder.stream(lines, summing, truncate):
            print(json.dumps({"text": text, "vector": _numbers(vector)}, ensure_ascii=False), flush=True)


def _numbers(vector: np.ndarray) -> list[float]:
    """Nine digits give back every 32-bit number."""
    return [float(f"{value:.9g}") for value in vector]
