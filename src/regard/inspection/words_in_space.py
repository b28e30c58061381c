"""Words as vectors: as the table has them, and as each layer has made them of their context.

A place is where vectors are read off: ``fixed`` before any context, then every layer. Likeness is the cosine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.core.tape import Tape
from regard.inspection.packing import pack
from regard.inspection.trace import BEGIN, uses_of
from regard.objectives.forcing import Reader
from regard.tasks.task import Task, Written

FIXED = "fixed"
MOST_SENTENCES = 200
MOST_TOKENS = 600


@dataclass(frozen=True, eq=False)
class Place:
    name: str
    vectors: Float32[np.ndarray, "tokens width"]


@dataclass(frozen=True, eq=False)
class Contexts:
    """Tokens of some sentences, one after another, and their vectors at every place."""

    sentences: tuple[tuple[str, ...], ...]
    places: tuple[Place, ...]
    table: Float32[np.ndarray, "vocabulary width"] | None
    """The fixed vectors of all tokens; None where a vector is made of letters too."""

    @property
    def tokens(self) -> list[str]:
        return [piece for pieces in self.sentences for piece in pieces]

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """``names`` of all tokens of the vocabulary, by id."""
        return {
            "sentences": [list(pieces) for pieces in self.sentences],
            "places": [
                {
                    "name": place.name,
                    "likeness": pack(likeness(place.vectors)[None], "float16"),
                    "map": plane(place.vectors).round(4).tolist(),
                }
                for place in self.places
            ],
            "vocabulary": self._in_vocabulary(names),
        }

    def _in_vocabulary(self, names: Sequence[str]) -> dict[str, list[list[Any]]]:
        """The nearest tokens of the whole vocabulary, by fixed vectors, for every token that occurs."""
        if self.table is None or len(names) != len(self.table):
            return {}
        ids = {name: number for number, name in enumerate(names)}
        return {
            piece: [[names[other], cosine] for other, cosine in nearest_fixed(self.table, ids[piece])]
            for piece in dict.fromkeys(self.tokens)
            if piece in ids
        }


def contexts(model: nn.Module, task: Task, sentences: Sequence[str]) -> Contexts:
    """Let the model read every sentence by itself."""
    said = [sentence for sentence in sentences if sentence.strip()]
    if not said:
        raise UsageError("there is nothing to read: write a sentence on each line")
    if len(said) > MOST_SENTENCES:
        raise UsageError(f"{len(said)} sentences: words are compared over up to {MOST_SENTENCES}")
    read = [_read(model, task.reading(sentence)) for sentence in said]
    count = sum(len(pieces) for pieces, _, _ in read)
    if count > MOST_TOKENS:
        raise UsageError(f"{count} tokens: words are compared over up to {MOST_TOKENS}")
    names = list(read[0][1])
    if not names:
        raise UsageError("this model shows no vectors of words in their context")
    return Contexts(
        tuple(pieces for pieces, _, _ in read),
        tuple(Place(name, np.concatenate([vectors[name] for _, vectors, _ in read])) for name in names),
        read[0][2],
    )


def _read(
    model: nn.Module, written: Written
) -> tuple[tuple[str, ...], dict[str, np.ndarray], np.ndarray | None]:
    """Pieces, their vectors at every place, and the table of fixed vectors."""
    with torch.no_grad(), Tape(model) as tape:
        state = written.start()
        pieces = tuple(written.read)
        if not pieces:  # a language model reads what it wrote
            device = next(chain(model.parameters(), model.buffers())).device
            ids = torch.tensor([written.ids], device=device)
            cast(Reader, model).read(Tokens.whole(ids), state)
            pieces = (written.first or BEGIN, *written.pieces)[: ids.shape[1]]
    found, table = dict[str, np.ndarray](), None
    for _, owner, seen in uses_of(model, tape.records, "fixed"):
        if FIXED not in found and seen[-1].shape[1] == len(pieces):
            found[FIXED] = _array(seen[-1][0])
            table = _array(cast(nn.Embedding, owner.get_submodule("tokens")).weight)
            table = table if table.shape[1] == found[FIXED].shape[1] else None
    for name, _, seen in uses_of(model, tape.records, "states"):
        numbers = [int(word) for word in name.split(".") if word.isdecimal()]
        # A layer has one number; a mixer inside one has two.
        if len(numbers) == 1 and seen[-1].shape[1] == len(pieces):
            found.setdefault(f"layer {numbers[0] + 1}", _array(seen[-1][0]))
    return pieces, found, table


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().float().cpu().numpy()
    return array


def likeness(vectors: Float32[np.ndarray, "tokens width"]) -> Float32[np.ndarray, "tokens tokens"]:
    """Cosines of all with all."""
    directions = _directions(vectors)
    cosines: np.ndarray = directions @ directions.T
    return cosines


def _directions(vectors: Float32[np.ndarray, "tokens width"]) -> Float32[np.ndarray, "tokens width"]:
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    directions: np.ndarray = (vectors / lengths).astype(np.float32)
    return directions


def plane(vectors: Float32[np.ndarray, "tokens width"]) -> Float32[np.ndarray, "tokens 2"]:
    """Where vectors differ most, drawn flat: their first two principal components, scaled to ±1."""
    centred = vectors - vectors.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(vectors), 2), dtype=np.float32)
    known = min(2, len(size))
    flat[:, :known] = (left * size)[:, :known]
    # A direction and its opposite are equally principal: let the first token far from 0 be positive.
    for column in flat.T:
        farthest = column[np.argmax(np.abs(column))]
        column *= np.sign(farthest) or 1
    largest = np.abs(flat).max(initial=0.0)
    scaled: np.ndarray = flat / largest if largest else flat
    return scaled


def nearest_fixed(
    table: Float32[np.ndarray, "vocabulary width"], token: int, most: int = 8
) -> list[tuple[int, float]]:
    """The tokens whose own vectors point most alike, the token itself left out."""
    directions = _directions(table)
    cosines = directions @ directions[token]
    cosines[token] = -2
    return [(int(other), round(float(cosines[other]), 4)) for other in np.argsort(-cosines)[:most]]
