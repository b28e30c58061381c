"""Changes to what a model computes, in words: heads off, attention uniform or drawn, residuals cut.

In JSON an intervention is ::

    {"do": "off",     "name": "decoder.stack.layers.0.mixers.1", "heads": [0, 2]}    heads look at nothing
    {"do": "uniform", "name": "decoder.stack.layers.0.mixers.1", "heads": []}        all: at everything alike
    {"do": "drawn",   "name": "decoder.stack.layers.0.mixers.1", "heads": [1], "row": 3, "weights": [0, 1, 0]}
    {"do": "cut",     "name": "encoder.stack.layers.1.joins.0"}                      nothing goes past it
    {"do": "lost",    "name": "encoder.embedding"}                                   positions are not told

``name`` is a module's; each deed names the value of it that is changed on the tape.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UsageError, nearest
from regard.core.tape import Edit

DEEDS = {"off": "weights", "uniform": "scores", "drawn": "scores", "cut": "residual", "lost": "positions"}
"""What is done, and to which value of a module."""
_LEAST = 1e-9


@dataclass(frozen=True)
class Intervention:
    do: str
    name: str
    heads: tuple[int, ...] = ()
    """Of an attention; none: all."""
    row: int | None = None
    """Who looks as drawn; None: everyone."""
    weights: tuple[float, ...] = ()
    """Where to, in any unit."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Intervention":
        do = str(values.get("do"))
        if do not in DEEDS:
            raise UsageError(f"there is no intervention {do!r}{nearest(do, DEEDS)}")
        try:
            made = cls(
                do,
                str(values["name"]),
                tuple(int(head) for head in values.get("heads") or ()),
                None if values.get("row") is None else int(values["row"]),
                tuple(float(weight) for weight in values.get("weights") or ()),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"not an intervention: {error}") from None
        if do == "drawn" and not (made.weights and min(made.weights) >= 0 and max(made.weights) > 0):
            raise UsageError("drawn attention needs weights, none negative and not all zero")
        return made

    def to_dict(self) -> dict[str, Any]:
        said: dict[str, Any] = {"do": self.do, "name": self.name, "heads": list(self.heads)}
        if self.do == "drawn":
            said |= {"row": self.row, "weights": list(self.weights)}
        return said

    @property
    def value(self) -> str:
        """The full name of what is changed."""
        return f"{self.name}.{DEEDS[self.do]}"

    def edit(self) -> Edit:
        """For one pass over a text: rows are counted from its beginning."""
        match self.do:
            case "off":
                return lambda weights: self._of_heads(weights, torch.zeros_like(weights))
            case "uniform":
                return lambda scores: self._of_heads(scores, torch.zeros_like(scores))
            case "drawn":
                return _Drawing(self)
        return torch.zeros_like

    def _of_heads(self, value: Tensor, changed: Tensor) -> Tensor:
        if not self.heads:
            return changed
        if max(self.heads) >= value.shape[1] or min(self.heads) < 0:
            raise UsageError(f"{self.name} has heads 0 to {value.shape[1] - 1}, not {max(self.heads)}")
        result = value.clone()
        result[:, list(self.heads)] = changed[:, list(self.heads)]
        return result


class _Drawing:
    """Scores whose softmax is what was drawn. Masks still hold, and rows still sum to one."""

    def __init__(self, drawn: Intervention) -> None:
        self.drawn, self.rows = drawn, 0
        self.scores = torch.tensor(drawn.weights).clamp_min(_LEAST).log()

    def __call__(self, scores: Tensor) -> Tensor:
        queries, keys = scores.shape[-2:]
        # Rows come all at once or one by one. A call with as many rows as keys begins a text.
        begin = 0 if queries == keys else self.rows
        self.rows = begin + queries
        row = scores.new_full((keys,), float(torch.log(torch.tensor(_LEAST))))
        known = min(keys, len(self.scores))
        row[:known] = self.scores[:known].to(scores)
        changed = scores.clone()
        if self.drawn.row is None:
            changed[:] = row
        elif begin <= self.drawn.row < begin + queries:
            changed[:, :, self.drawn.row - begin] = row
        return self.drawn._of_heads(scores, changed)


def edits_of(interventions: Iterable[Intervention]) -> dict[str, Edit]:
    """Edits for one pass, in the order of what was asked where several change one value."""
    gathered: dict[str, list[Edit]] = {}
    for one in interventions:
        gathered.setdefault(one.value, []).append(one.edit())
    return {name: _in_turn(edits) for name, edits in gathered.items()}


def _in_turn(edits: Sequence[Callable[[Tensor], Tensor]]) -> Edit:
    def edit(value: Tensor) -> Tensor:
        for one in edits:
            value = one(value)
        return value

    return edit
