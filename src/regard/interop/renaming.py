"""Weights under two names: one table for both directions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core.errors import DataError

_SHOWN = 6


class Renamed(NamedTuple):
    ours: str
    theirs: str | tuple[str, ...]
    """Several: ours is all of them, one below the other, each as tall."""
    transposed: bool = False
    """Theirs is (in, out), ours (out, in)."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.theirs,) if isinstance(self.theirs, str) else self.theirs


def renamed_layer(ours: str, *theirs: str, transposed: bool = False) -> list[Renamed]:
    """Weight and bias of a linear map, or of several in one."""
    return [
        Renamed(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), transposed),
        Renamed(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs)),
    ]


def to_ours(
    table: Sequence[Renamed], stored: Mapping[str, Tensor], shapes: Mapping[str, Tensor], where: Path
) -> dict[str, Tensor]:
    """Their weights under our names; every one there, none left over, each of the shape ours has."""
    problems, known = [], [name for row in table for name in row.names]
    if missing := [name for name in known if name not in stored]:
        problems.append(f"missing: {_some(missing)}")
    if left := sorted(set(stored) - set(known)):
        problems.append(f"with no place in this model: {_some(left)}")
    assert set(shapes) == {row.ours for row in table}, "the table names all of our weights"
    there = [row for row in table if all(name in stored for name in row.names)]
    differing = []
    for row in there:
        wanted = _turned(row, shapes[row.ours])
        share = [wanted.shape[0] // len(row.names), *wanted.shape[1:]]
        differing += [
            f"{name} is {list(stored[name].shape)}, but config.json asks for {share}"
            for name in row.names
            if list(stored[name].shape) != share
        ]
    if differing:
        problems.append(f"of another shape: {_some(differing)}")
    if problems:
        raise DataError("; ".join(["its weights do not fit", *problems]), file=where)
    return {row.ours: _turned(row, _joined([stored[name] for name in row.names])) for row in there}


def to_theirs(table: Sequence[Renamed], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = dict[str, Tensor]()
    for row in table:
        parts = _turned(row, weights[row.ours]).chunk(len(row.names))
        found |= {name: part.contiguous() for name, part in zip(row.names, parts, strict=True)}
    return found


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _turned(row: Renamed, tensor: Tensor) -> Tensor:
    return tensor.t().contiguous() if row.transposed and tensor.dim() == 2 else tensor


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
