"""One thing that both a config and a spec say, under two names: how configs become specs and back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.core.errors import DataError, UsageError
from regard.core.spec import Spec, diff

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
_SHOWN = 4


class Said(NamedTuple):
    config: str
    usual: Any
    """What is meant where a config is silent."""
    places: tuple[str, ...]
    """In the spec of the model; one that a system does not have is passed over."""
    words: dict[Any, str] | None = None
    """Theirs to ours, where they call it differently; of several that mean the same, the first is written."""


class WayOut(NamedTuple):
    """How to train what another program has a word for, where a recipe has something else."""

    places: tuple[str, ...]
    """In the spec of the model."""
    settings: tuple[str, ...]


def to_spec(rows: Sequence[Said], config: Mapping[str, Any], values: dict[str, Any], where: Path) -> None:
    """Put what a config says into the plain form of a spec."""
    for row in rows:
        value = config.get(row.config, row.usual)
        if row.words is not None:
            value = _our_word(row, value, where)
        for place in row.places:
            _put(values, place, value)


def to_config(rows: Sequence[Said], leaves: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says of a spec, given as its leaves; nothing where the spec has no such place."""
    found = {row.config: _their_word(row, leaves.get(row.places[0])) for row in rows}
    return {name: value for name, value in found.items() if value is not None}


def whole_number(config: Mapping[str, Any], name: str, usual: int, where: Path) -> int:
    value = config.get(name, usual)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"expected a number, got {value!r}", file=where, field=name)
    return value


def differences(theirs: Spec, ours: Spec, title: str) -> list[str]:
    """What a config read back does not say of our model."""
    return [f"model.{path} is {own!r} ({title}: {other!r})" for path, other, own in diff(theirs, ours)]


def gathered(found: list[str], way: WayOut) -> list[str]:
    """All that differs in some places as one, which also tells the way out, before the rest."""
    there = [one for one in found if one.startswith(tuple(f"model.{place}." for place in way.places))]
    if not there:
        return found
    settings = " ".join(f"--set {setting}" for setting in way.settings)
    return [f"{there[0]}: train with {settings}", *(one for one in found if one not in there)]


def refuse_differences(found: Sequence[str], title: str) -> None:
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise UsageError(f"this run is no {title}: {'; '.join(found[:_SHOWN])}{more}")


def _our_word(row: Said, value: Any, where: Path) -> str:
    words = row.words or {}
    found = next((ours for theirs, ours in words.items() if theirs == value), None)
    if found is None:
        raise UsageError(f"{where}: {row.config} is {value!r}; regard knows {', '.join(map(str, words))}")
    return found


def _their_word(row: Said, value: Any) -> Any:
    if row.words is None:
        return value
    return next((theirs for theirs, ours in row.words.items() if ours == value), None)


def _put(values: Any, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for key in way:
        values = values[int(key)] if isinstance(values, list) else values.get(key)
        if values is None:
            return
    values[last] = value
