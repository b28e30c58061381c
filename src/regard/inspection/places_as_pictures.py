"""Positions as pictures: vectors that are added, turns and biases that attention feels, their likeness."""

from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float32
from torch import nn

from regard.core.sequences import Tokens
from regard.core.tape import Tape
from regard.inspection.packing import pack
from regard.inspection.trace import uses_of
from regard.objectives.forcing import Reader
from regard.parts.positions import PairPositions, Positions
from regard.tasks.task import Written

SHOWN = 64


def positions_of(model: nn.Module, written: Written, count: int = SHOWN) -> list[dict[str, Any]]:
    """Everything in ``model`` that tells where a token stands; ``written`` is any text it can read."""
    with torch.no_grad(), Tape(model) as tape:
        state = written.start()
        if written.ids:
            device = next(chain(model.parameters(), model.buffers())).device
            cast(Reader, model).read(Tokens.whole(torch.tensor([written.ids], device=device)), state)
    found = []
    queries = {name: seen[0] for name, _, seen in uses_of(model, tape.records, "queries")}
    for name, owner, _ in uses_of(model, tape.records, "positions"):
        told = owner.get_submodule("positions")
        heads = queries.get(name)
        with torch.no_grad():
            if heads is None:
                found.append(_added(name, cast(Positions, told), count))
            else:
                _, number, _, width = heads.shape
                found += _felt(name, cast(PairPositions, told), number, width, count)
    return found


def _added(name: str, told: Positions, count: int) -> dict[str, Any]:
    shown = min(count, told.longest or count)
    device = next((tensor.device for tensor in (*told.parameters(), *told.buffers())), None)
    vectors = told(torch.arange(shown, device=device)[None])[0].float().cpu().numpy()
    return {"name": name, "kind": "added to the input", **_picture(vectors)}


def _felt(name: str, told: PairPositions, heads: int, width: int, count: int) -> list[dict[str, Any]]:
    """What a query and key of nothing but ones feel of where they stand."""
    place = torch.arange(count)[None]
    ones = torch.ones(1, heads, count, width)
    turned = told.turn(ones, place)
    bias = told.bias(ones, place, place)
    found = []
    if not torch.equal(turned, ones):
        found.append(
            {"name": name, "kind": "queries and keys are turned", **_picture(turned[0, 0].float().numpy())}
        )
    if bias is not None:
        matrices = bias[0].float().numpy()
        found.append(
            {"name": name, "kind": "added to the scores", "bias": pack(matrices, "float16"), "picture": None}
        )
    return found


def _picture(vectors: Float32[np.ndarray, "positions width"]) -> dict[str, Any]:
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    alike = (directions @ directions.T)[None].astype(np.float32)
    return {"picture": pack(vectors[None], "float16"), "likeness": pack(alike, "float16")}
