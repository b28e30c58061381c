"""Weights under two names: one table for both directions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core.errors import DataError, UsageError

_SHOWN = 6


class Change(NamedTuple):
    """Where a weight of theirs and ours differ in more than the name."""

    to_ours: Callable[[Tensor], Tensor]
    to_theirs: Callable[[Tensor], Tensor]


class Renamed(NamedTuple):
    ours: str
    theirs: str | tuple[str, ...]
    """Several: ours is all of them, one below the other, each as tall."""
    transposed: bool = False
    """Theirs is (in, out), ours (out, in)."""
    change: Change | None = None

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
    differing = [
        f"{name} is {list(stored[name].shape)}, but config.json asks for {list(share.shape)}"
        for row in there
        for name, share in _theirs(row, shapes[row.ours]).items()
        if stored[name].shape != share.shape
    ]
    if differing:
        problems.append(f"of another shape: {_some(differing)}")
    if problems:
        raise DataError("; ".join(["its weights do not fit", *problems]), file=where)
    return {row.ours: _ours(row, [stored[name] for name in row.names]) for row in there}


def to_theirs(table: Sequence[Renamed], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = dict[str, Tensor]()
    for row in table:
        for name, tensor in _theirs(row, weights[row.ours]).items():
            if name in found and not torch.equal(found[name], tensor):
                raise UsageError(f"{row.ours} is not as in other layers, but {name} is one for all of them")
            found[name] = tensor
    return found


def _ours(row: Renamed, parts: Sequence[Tensor]) -> Tensor:
    whole = _turned(row, _joined(parts))
    return whole if row.change is None else row.change.to_ours(whole).contiguous()


def _theirs(row: Renamed, ours: Tensor) -> dict[str, Tensor]:
    whole = ours if row.change is None else row.change.to_theirs(ours)
    parts = _turned(row, whole).chunk(len(row.names))
    return {name: part.contiguous() for name, part in zip(row.names, parts, strict=True)}


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _turned(row: Renamed, tensor: Tensor) -> Tensor:
    return tensor.t().contiguous() if row.transposed and tensor.dim() == 2 else tensor


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
