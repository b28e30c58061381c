"""What a head does, in numbers: how much it looks at the token before, after, at its like, at marks."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from regard.inspection.trace import MARKS, Attention


class Deeds(NamedTuple):
    """Means over rows; all but ``entropy`` are shares between 0 and 1."""

    previous: float
    """To the token just before the one that looks."""
    next: float
    same: float
    """To the token itself and others that are written alike."""
    separator: float
    """To marks of begin and end."""
    diagonal: float
    """To places within one step of the line from the first to the last."""
    entropy: float
    """In bits: 0 looks at one place, log₂ n at n places alike."""


def deeds(seen: Attention) -> list[Deeds]:
    """Of every head."""
    return [_deeds(weights, seen) for weights in seen.weights]


def _deeds(weights: Float32[np.ndarray, "rows columns"], seen: Attention) -> Deeds:
    rows, columns = weights.shape
    itself = seen.looks_at == "itself"
    # A row of a decoder is named for what it predicts, and looks as the token before it.
    own = seen.columns[:rows] if itself else seen.rows
    alike = np.array([[_written(row) == _written(column) for column in seen.columns] for row in own])
    marks = np.array([column in MARKS for column in seen.columns])
    place = np.arange(columns)[None, :]
    line = np.arange(rows)[:, None] * (1.0 if itself else (columns - 1) / max(1, rows - 1))
    sure = np.clip(weights, 1e-12, 1.0)
    return Deeds(
        previous=_mean(np.diagonal(weights, -1)) if itself else 0.0,
        next=_mean(np.diagonal(weights, 1)) if itself else 0.0,
        same=_mean((weights * alike).sum(1)),
        separator=_mean((weights * marks).sum(1)),
        diagonal=_mean((weights * (np.abs(place - line) <= 1)).sum(1)),
        entropy=_mean(-(weights * np.log2(sure)).sum(1)),
    )


def _written(piece: str) -> str:
    return piece.strip("▁ ").lower() or piece


def _mean(values: np.ndarray) -> float:
    return round(float(values.mean()), 4) if values.size else 0.0
