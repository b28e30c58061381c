"""Weights under two names: one table for both directions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from regard.core.errors import DataError

_SHOWN = 6


class Renamed(NamedTuple):
    ours: str
    theirs: str
    transposed: bool = False
    """Theirs is (in, out), ours (out, in)."""


def to_ours(
    table: Sequence[Renamed], stored: Mapping[str, Tensor], shapes: Mapping[str, Tensor], where: Path
) -> dict[str, Tensor]:
    """Their weights under our names; every one there, none left over, each of the shape ours has."""
    problems = []
    if missing := [row.theirs for row in table if row.theirs not in stored]:
        problems.append(f"missing: {_some(missing)}")
    if left := sorted(set(stored) - {row.theirs for row in table}):
        problems.append(f"with no place in this model: {_some(left)}")
    found = {row.ours: _turned(row, stored[row.theirs]) for row in table if row.theirs in stored}
    assert set(shapes) == {row.ours for row in table}, "the table names all of our weights"
    if differing := [
        f"{row.theirs} is {list(stored[row.theirs].shape)}, but config.json asks for "
        f"{list(_turned(row, shapes[row.ours]).shape)}"
        for row in table
        if row.ours in found and found[row.ours].shape != shapes[row.ours].shape
    ]:
        problems.append(f"of another shape: {_some(differing)}")
    if problems:
        raise DataError("; ".join(["its weights do not fit", *problems]), file=where)
    return found


def to_theirs(table: Sequence[Renamed], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {row.theirs: _turned(row, weights[row.ours]) for row in table}


def _turned(row: Renamed, tensor: Tensor) -> Tensor:
    return tensor.t().contiguous() if row.transposed and tensor.dim() == 2 else tensor


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
