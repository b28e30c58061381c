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
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, cast, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from regard.core.errors import UsageError, nearest

Plain: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None
"""What JSON can say. Not written as containing itself: checkers at run time do not follow that."""

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
    unsaid: ClassVar[str | None] = None
    """In a family, the kind that is meant where none is said: specs written before there was a choice."""

    @model_validator(mode="wrap")
    @classmethod
    def _resolve_kind(cls, value: Any, handler: Any) -> Any:
        if not isinstance(value, Mapping):
            return value if isinstance(value, cls) else handler(value)
        fields = dict(value)
        if "kinds" in cls.__dict__:
            kind = fields.pop("kind", cls.unsaid)
            if kind is None:
                raise ValueError(f"needs a 'kind'{nearest('', cls.kinds)}")
            return _class_of_kind(cls, str(kind)).model_validate(fields)
        if fields.get("kind", cls.kind()) == cls.kind():
            fields.pop("kind", None)
        return handler(fields)

    @classmethod
    def kind(cls) -> str | None:
        """Short name within the family; "module:Class" for a part that lives outside this package."""
        return _kind_of(cls)

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
            lines = [_explain(cls, values, detail) for detail in _innermost(error.errors())]
            raise UsageError(f"{where}: " + "; ".join(lines)) from None

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls: type[S], text: str, where: str = "spec") -> S:
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"{where}: not valid JSON: {error}") from None
        return cls.from_dict(_mapping(values, where), where)

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    @classmethod
    def from_yaml(cls: type[S], text: str, where: str = "spec") -> S:
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(f"{where}: not valid YAML: {error}") from None
        return cls.from_dict(_mapping(values, where), where)

    def digest(self) -> str:
        """A short name for exactly this spec."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def override(self: S, assignments: Sequence[str]) -> S:
        """Apply ``a.b=value`` assignments; values are read as YAML, paths must exist."""
        values, switched = self.to_dict(), list[Plain]()
        for assignment in assignments:
            path, equals, text = assignment.partition("=")
            if not equals:
                raise UsageError(f"--set takes key=value, got {assignment!r}")
            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise UsageError(f"--set {path}: cannot read {text!r}: {error}") from None
            _assign(values, path.strip(), value, switched)
        return type(self).from_dict(values, where="--set " + " ".join(assignments))

    def paths(self) -> dict[str, Plain]:
        """Every leaf as ``a.b.0.c`` → value."""
        return dict(_leaves(self.to_dict()))


class DocumentedField(NamedTuple):
    path: str
    value: Plain
    meaning: str


def documented(spec: Spec, path: str = "") -> Iterator[DocumentedField]:
    """Every leaf with what it means: option docs are read off the specs, so they cannot drift."""
    for name, field in type(spec).model_fields.items():
        value, place = getattr(spec, name), f"{path}.{name}" if path else name
        inner = value if isinstance(value, tuple) else (value,)
        if inner and all(isinstance(item, Spec) for item in inner):
            for number, item in enumerate(inner):
                where = f"{place}.{number}" if isinstance(value, tuple) else place
                if item.kind() is not None:
                    yield DocumentedField(f"{where}.kind", item.kind(), _first_line(type(item)))
                yield from documented(item, where)
        else:
            yield DocumentedField(place, _plain(value), " ".join((field.description or "").split()))


def _first_line(cls: type[Spec]) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]


def diff(left: Spec, right: Spec) -> list[tuple[str, Plain, Plain]]:
    """The leaves in which two specs differ; None stands for a field the other does not have."""
    a, b = left.paths(), right.paths()
    keys = list(a) + [key for key in b if key not in a]
    return [(key, a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key)]


def _mapping(values: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise UsageError(f"{where}: expected a mapping of fields, got {values!r}")
    return values


@cache
def _kind_of(cls: type[Spec]) -> str | None:
    path = f"{cls.__module__}:{cls.__qualname__}"
    family = _family_of(cls)
    if family is None or family is cls:
        return None
    return next((name for name, where in family.kinds.items() if where == path), path)


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


def _assign(values: dict[str, Plain], path: str, value: Plain, switched: list[Plain]) -> None:
    """Put ``value`` at ``path``. ``switched`` collects parts whose kind was changed on the way."""
    keys = path.split(".")
    holder: Plain = values
    for depth, key in enumerate(keys):
        known = dict(_children(holder))
        if depth == len(keys) - 1 and any(holder is part for part in switched):
            break  # the fields of the new kind are not written out yet; validation knows them
        # A part just chosen by kind shows its fields only once it is built; validation will judge this one.
        if key not in known and set(known) == {"kind"} and depth == len(keys) - 1:
            break
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
            switched.append(holder)
        holder[last] = value


def _children(value: Plain) -> Iterator[tuple[str, Plain]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(i), item) for i, item in enumerate(value))


def _innermost(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Without the echoes: a list that holds a bad item is itself reported as one item short."""
    places = [detail["loc"] for detail in details]

    def holds_another(loc: tuple[int | str, ...]) -> bool:
        return any(len(place) > len(loc) and place[: len(loc)] == loc for place in places)

    return [detail for detail in details if not holds_another(detail["loc"])]


def _explain(cls: type[Spec], values: Any, detail: ErrorDetails) -> str:
    path = ".".join(str(part) for part in detail["loc"])
    given = detail["input"]
    if detail["type"] == "extra_forbidden":
        *parents, name = detail["loc"]
        return f"there is no field {path!r}{nearest(str(name), _fields_at(cls, values, parents))}"
    if detail["type"] == "missing":
        return f"{path}: missing"
    message = detail["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(given, Mapping) else f"got {given!r}: "
    return f"{path}: {shown}{message}" if path else message


def _fields_at(cls: type[Spec], values: Any, loc: Sequence[int | str]) -> list[str]:
    """The fields that the spec at ``loc`` has, ``values`` being what was given for the whole."""
    chosen: type[Spec] | None = _chosen(cls, values)
    for part in loc:
        if isinstance(part, str):
            field = chosen.model_fields.get(part) if chosen is not None else None
            chosen = None if field is None else _spec_in(field.annotation)
        if chosen is None:
            return []
        values = values[part]
        chosen = _chosen(chosen, values)
    return [] if chosen is None else list(chosen.model_fields)


def _chosen(cls: type[Spec], values: Any) -> type[Spec]:
    if "kinds" in cls.__dict__ and isinstance(values, Mapping):
        kind = values.get("kind", cls.unsaid)
        return cls if kind is None else _class_of_kind(cls, str(kind))
    return cls


def _spec_in(annotation: Any) -> type[Spec] | None:
    """The spec a field may hold, alone, as an option or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _spec_in(inner))), None)
