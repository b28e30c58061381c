"""Typed specs: frozen values that describe a part completely and can build it.

A spec holds numbers and other specs. It prints, compares, hashes, goes to JSON or YAML and back, and an
override must name a field that exists. Where a field may hold one of several parts, its type is a
*family*: an abstract spec with a table ``kinds`` from short name to "module:Class". The table is written
out by hand, so nothing depends on what happened to be imported before.
"""

import hashlib
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from regard.core.errors import UsageError, nearest

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

S = TypeVar("S", bound="Spec")


class Spec(BaseModel):
    """Base of all specs. Subclasses add typed fields and a ``build`` method."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ignored_types=(cached_property,),
        allow_inf_nan=False,
    )

    kinds: ClassVar[dict[str, str]] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _resolve_kind(cls, value: Any, handler: Any) -> Any:
        if not isinstance(value, Mapping):
            return value if isinstance(value, cls) else handler(value)
        fields = dict(value)
        if "kinds" in cls.__dict__:
            kind = fields.pop("kind", None)
            if kind is None:
                raise ValueError(f"needs a 'kind'{nearest('', cls.kinds)}")
            return _class_of_kind(cls, str(kind)).model_validate(fields)
        if fields.get("kind", cls.kind()) == cls.kind():
            fields.pop("kind", None)
        return handler(fields)

    @classmethod
    def kind(cls) -> str | None:
        """Short name within the family; "module:Class" for a part that lives outside this package."""
        path = f"{cls.__module__}:{cls.__qualname__}"
        family = _family_of(cls)
        if family is None or family is cls:
            return None
        return next((name for name, where in family.kinds.items() if where == path), path)

    def to_dict(self) -> dict[str, Plain]:
        kind = self.kind()
        named: dict[str, Plain] = {} if kind is None else {"kind": kind}
        fields = type(self).model_fields
        return named | {name: _plain(getattr(self, name)) for name in fields}

    @classmethod
    def from_dict(cls: type[S], values: Mapping[str, Any], where: str = "spec") -> S:
        """Validate; say every mistake in one message, each with its path and the value given."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            lines = [_explain(cls, detail) for detail in error.errors()]
            raise UsageError(f"{where}: " + "; ".join(lines)) from None

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls: type[S], text: str, where: str = "spec") -> S:
        return cls.from_dict(json.loads(text), where)

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    @classmethod
    def from_yaml(cls: type[S], text: str, where: str = "spec") -> S:
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(f"{where}: not valid YAML: {error}") from None
        if not isinstance(values, Mapping):
            raise UsageError(f"{where}: expected a mapping of fields, got {values!r}")
        return cls.from_dict(values, where)

    def digest(self) -> str:
        """A short name for exactly this spec."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def override(self: S, assignments: Sequence[str]) -> S:
        """Apply ``a.b=value`` assignments; values are read as YAML, paths must exist."""
        values = self.to_dict()
        for assignment in assignments:
            path, equals, text = assignment.partition("=")
            if not equals:
                raise UsageError(f"--set takes key=value, got {assignment!r}")
            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise UsageError(f"--set {path}: cannot read {text!r}: {error}") from None
            _assign(values, path.strip(), value)
        return type(self).from_dict(values, where="--set " + " ".join(assignments))

    def paths(self) -> dict[str, Plain]:
        """Every leaf as ``a.b.0.c`` → value."""
        return dict(_leaves(self.to_dict()))


def diff(left: Spec, right: Spec) -> list[tuple[str, Plain, Plain]]:
    """The leaves in which two specs differ; None stands for a field the other does not have."""
    a, b = left.paths(), right.paths()
    keys = list(a) + [key for key in b if key not in a]
    return [(key, a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key)]


def _family_of(cls: type[Spec]) -> type[Spec] | None:
    for base in cls.__mro__:
        if base is not Spec and "kinds" in base.__dict__:
            return cast(type[Spec], base)
    return None


def _class_of_kind(family: type[Spec], kind: str) -> type[Spec]:
    where = family.kinds.get(kind, kind)
    module, colon, name = where.partition(":")
    if not colon:
        raise ValueError(f"unknown kind {kind!r}{nearest(kind, family.kinds)}")
    # A spec file must not be able to run code: an outside part is used only after its owner imported it.
    if kind not in family.kinds and module not in sys.modules:
        raise ValueError(f"kind {kind!r} is not part of regard: import {module} first")
    chosen = getattr(importlib.import_module(module), name, None)
    if not (isinstance(chosen, type) and issubclass(chosen, family)):
        raise ValueError(f"kind {kind!r} is not a {family.__name__}")
    return chosen


def _plain(value: Any) -> Plain:
    if isinstance(value, Spec):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return cast(Plain, value)


def _leaves(value: Plain, path: str = "") -> Iterator[tuple[str, Plain]]:
    items: list[tuple[str, Plain]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = [(str(i), item) for i, item in enumerate(value)]
    if not items:
        yield path, value
    for key, item in items:
        yield from _leaves(item, f"{path}.{key}" if path else key)


def _assign(values: dict[str, Plain], path: str, value: Plain) -> None:
    keys = path.split(".")
    holder: Plain = values
    for depth, key in enumerate(keys):
        known = dict(_children(holder))
        if key not in known:
            before = ".".join(keys[:depth])
            options = [f"{before}.{k}" if before else k for k in known]
            # A leaf of the same name elsewhere in the spec is the likeliest intention.
            options += [p for p, _ in _leaves(values) if p.split(".")[-1] == keys[-1]]
            asked = ".".join(keys[: depth + 1])
            raise UsageError(f"--set {path}: there is no field {asked!r}{nearest(path, options)}")
        if depth < len(keys) - 1:
            holder = known[key]
    last = keys[-1]
    if isinstance(holder, list):
        holder[int(last)] = value
    elif isinstance(holder, dict):
        if last == "kind" and value != holder["kind"]:
            # Another part: its own defaults, not the old part's fields.
            holder.clear()
        holder[last] = value


def _children(value: Plain) -> Iterator[tuple[str, Plain]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(i), item) for i, item in enumerate(value))


def _explain(cls: type[Spec], detail: ErrorDetails) -> str:
    path = ".".join(str(part) for part in detail["loc"])
    given = detail["input"]
    if detail["type"] == "extra_forbidden":
        return f"there is no field {path!r}{nearest(str(detail['loc'][-1]), cls.model_fields)}"
    if detail["type"] == "missing":
        return f"{path}: missing"
    message = detail["msg"].removeprefix("Value error, ")
    shown = repr(given) if not isinstance(given, Mapping) else "this mapping"
    return f"{path}: got {shown}: {message}" if path else message
