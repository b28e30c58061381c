"""Many attentions as one matrix: which source token an output rests on, what has flowed where."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float32

from regard.core.errors import UsageError
from regard.inspection.trace import MARKS, Trace

Matrix: TypeAlias = Float32[np.ndarray, "rows columns"]
SPACE = "▁"


def alignment(trace: Trace, layer: int | None = None) -> Matrix | None:
    """Which source token (columns) each prediction (rows) rests on: the mean over the heads of one layer.

    ``layer`` counts from 0. By default it is the last but one of the layers that look at the source, whose
    mean over heads comes closest to a word alignment (Garg et al. 2019), or the only one there is.
    None if the model does not look at its source at all.
    """
    looking = [seen for seen in trace.attentions if seen.looks_at == "memory"]
    layers = sorted({seen.layer for seen in looking})
    if layer is None:
        if not layers:
            return None
        layer = layers[max(0, len(layers) - 2)]
    if layer not in layers:
        there = ", ".join(str(number) for number in layers) or "none"
        raise UsageError(f"layer {layer} does not look at the source (layers that do: {there})")
    heads: Matrix = np.concatenate([seen.weights for seen in looking if seen.layer == layer]).mean(axis=0)
    return heads


def rollout(trace: Trace, part: str = "encoder") -> Matrix | None:
    """How much of each token (columns) has reached each position (rows) after all layers of ``part``.

    Attention rollout (Abnar and Zuidema 2020 eq. 1): the product over layers of A = ½W + ½I, W the mean of
    the heads, with rows that sum to 1; I stands for the residual connection. None if nothing in ``part``
    looks at its own sequence.
    """
    looking = trace.looking_at("itself", part)
    if not looking:
        return None
    flowed: Matrix = np.eye(len(looking[0].columns), dtype=np.float32)
    for seen in looking:
        step = seen.weights.mean(axis=0) + np.eye(len(seen.rows), dtype=np.float32)
        flowed = step / step.sum(axis=-1, keepdims=True) @ flowed
    return flowed


def source_rollout(trace: Trace) -> Matrix | None:
    """How much of each source token (columns) has reached each prediction (rows), through all layers.

    Rollout carried on into a decoder: in every layer half of a row stays what it was, and half is what its
    attention brings, from the rows before it or from the source as the encoder's own rollout left it. Shares
    of the source, so that rows sum to 1. With one attention and no layers it is that attention. None if the
    model does not look at its source.
    """
    looking = [seen for seen in trace.attentions if seen.part != "encoder"]
    if not any(seen.looks_at == "memory" for seen in looking):
        return None
    count, read = len(trace.predictions), len(trace.source)
    encoded = rollout(trace)
    own: Matrix = np.eye(count, dtype=np.float32)
    source: Matrix = np.zeros((count, read), dtype=np.float32)
    for seen in looking:
        weights = seen.weights.mean(axis=0)
        if seen.looks_at == "itself":
            own, source = (own + weights @ own) / 2, (source + weights @ source) / 2
        else:
            brought = weights if encoded is None else weights @ encoded
            own, source = own / 2, (source + brought) / 2
    shares: Matrix = source / np.maximum(source.sum(axis=1, keepdims=True), np.float32(1e-12))
    return shares


class WordAlignment(NamedTuple):
    """Which source word each target word rests on; words count from 0, as in Pharaoh's format."""

    source: list[str]
    target: list[str]
    pairs: list[tuple[int, int]]
    """(source word, target word), one for each target word."""


def word_alignment(matrix: Matrix, rows: Sequence[str], columns: Sequence[str]) -> WordAlignment:
    """Pieces are gathered into words: a source word gets what its pieces get, a target word the mean of its
    pieces. Marks of begin and end are no words."""
    source, target = words_of(columns), words_of(rows)
    pairs = []
    for number, word in enumerate(target):
        shares = [matrix[np.ix_(word, other)].sum() for other in source]
        if shares:
            pairs.append((int(np.argmax(shares)), number))
    return WordAlignment(
        [_spelled(columns, word) for word in source], [_spelled(rows, word) for word in target], pairs
    )


def words_of(pieces: Sequence[str]) -> list[list[int]]:
    """Places of the pieces of each word. A word begins with the mark of a space, where there are any; else
    every piece is one, unless it says that it goes on (``##``)."""
    spaced = any(SPACE in piece for piece in pieces)
    words, begun = list[list[int]](), False
    for place, piece in enumerate(pieces):
        if piece in MARKS:
            begun = False
            continue
        begins = piece.startswith(SPACE) if spaced else not piece.startswith("##")
        if begins or not begun:
            words.append([])
        begun = True
        if piece.strip(f"{SPACE} "):
            words[-1].append(place)
    return [word for word in words if word]


def _spelled(pieces: Sequence[str], word: Sequence[int]) -> str:
    return "".join(pieces[place].removeprefix("##") for place in word).strip(f"{SPACE} ")
