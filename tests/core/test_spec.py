"""Specs: to text and back, overridden by name, refused with the field and both values."""

import hashlib
import sys
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from regard.core.errors import UsageError
from regard.core.spec import Spec, diff


class ShapeSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "circle": f"{__name__}:CircleSpec",
        "polygon": f"{__name__}:PolygonSpec",
        "group": f"{__name__}:GroupSpec",
    }


class CircleSpec(ShapeSpec):
    radius: float = Field(default=1.5, gt=0)


class PolygonSpec(ShapeSpec):
    corners: int = Field(default=3, ge=3)
    filled: bool = False
    colour: Literal["red", "blue"] = "red"


class GroupSpec(ShapeSpec):
    members: tuple[ShapeSpec, ...] = Field(min_length=1)
    frame: ShapeSpec | None = None


class StarSpec(ShapeSpec):
    """A part of somebody else's: not in the table."""

    spikes: int = 5


class CanvasSpec(Spec):
    width: int = Field(gt=0)
    shape: ShapeSpec = CircleSpec()
    background: ShapeSpec | None = None
    names: dict[str, int] = Field(default_factory=dict)


shapes = st.recursive(
    st.builds(CircleSpec, radius=st.floats(0.1, 1e6, allow_nan=False))
    | st.builds(
        PolygonSpec,
        corners=st.integers(3, 99),
        filled=st.booleans(),
        colour=st.sampled_from(["red", "blue"]),
    )
    | st.builds(StarSpec, spikes=st.integers()),
    lambda inner: st.builds(
        GroupSpec,
        members=st.lists(inner, min_size=1, max_size=3).map(tuple),
        frame=st.none() | inner,
    ),
    max_leaves=5,
)
canvases = st.builds(
    CanvasSpec,
    width=st.integers(1, 9),
    shape=shapes,
    background=st.none() | shapes,
    names=st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
NESTED = CanvasSpec(width=7, shape=GroupSpec(members=(CircleSpec(radius=2), PolygonSpec(corners=5))))


def refused(*assignments: str, of: Spec = NESTED) -> str:
    with pytest.raises(UsageError) as caught:
        of.override(assignments)
    return str(caught.value)


# ---------------------------------------------------------------- to text and back


@given(canvas=canvases)
def test_json_and_yaml_give_the_same_spec_back(canvas: CanvasSpec) -> None:
    assert CanvasSpec.from_json(canvas.to_json()) == canvas
    assert CanvasSpec.from_yaml(canvas.to_yaml()) == canvas
    assert ShapeSpec.from_dict(canvas.shape.to_dict()) == canvas.shape


def test_the_dictionary_is_plain_and_names_kinds() -> None:
    assert NESTED.to_dict() == {
        "width": 7,
        "shape": {
            "kind": "group",
            "members": [
                {"kind": "circle", "radius": 2.0},
                {"kind": "polygon", "corners": 5, "filled": False, "colour": "red"},
            ],
            "frame": None,
        },
        "background": None,
        "names": {},
    }


def test_a_concrete_spec_accepts_its_own_kind_only() -> None:
    assert CircleSpec.from_dict({"kind": "circle", "radius": 3}) == CircleSpec(radius=3)
    with pytest.raises(UsageError, match="no field 'kind'"):
        CircleSpec.from_dict({"kind": "polygon", "radius": 3})


def test_a_spec_is_frozen_and_hashable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        CircleSpec().radius = 2.0
    assert len({PolygonSpec(), PolygonSpec(corners=3), PolygonSpec(corners=4)}) == 2


def test_extra_fields_are_refused_with_their_path_and_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match="corner"):
        PolygonSpec(corner=4)
    values = NESTED.to_dict()
    values["shape"]["members"][1]["corner"] = 4
    with pytest.raises(UsageError) as caught:
        CanvasSpec.from_dict(values, where="spec.yaml")
    assert str(caught.value) == (
        "spec.yaml: there is no field 'shape.members.1.corner' (did you mean 'corners'?)"
    )


def test_every_mistake_is_said_once() -> None:
    values = {"width": 0, "shape": {"kind": "group", "members": [{"kind": "polygon", "corners": 2}]}}
    with pytest.raises(UsageError) as caught:
        CanvasSpec.from_dict(values)
    assert str(caught.value).split("; ") == [
        "spec: width: got 0: Input should be greater than 0",
        "shape.members.0.corners: got 2: Input should be greater than or equal to 3",
    ]


def test_a_missing_field_is_named() -> None:
    with pytest.raises(UsageError, match="spec: width: missing"):
        CanvasSpec.from_dict({})


@pytest.mark.parametrize("read", [CanvasSpec.from_json, CanvasSpec.from_yaml])
@pytest.mark.parametrize("text", ["{", "[1, 2", "[1, 2]", "3", '"x"', "null"])
def test_text_that_is_no_spec_is_refused_by_name(read: object, text: str) -> None:
    with pytest.raises(UsageError, match=r"mine\.txt: "):
        read(text, where="mine.txt")


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_numbers_are_finite(number: str) -> None:
    with pytest.raises(UsageError, match=r"radius.*finite"):
        CircleSpec.from_json(f'{{"radius": {number}}}')


# ---------------------------------------------------------------- families


def test_a_family_needs_a_kind() -> None:
    with pytest.raises(UsageError, match=r"shape: needs a 'kind' \(there are: circle, group, polygon\)"):
        CanvasSpec.from_dict({"width": 1, "shape": {"radius": 2}})


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"shape: unknown kind 'circel' \(did you mean 'circle'\?\)"):
        CanvasSpec.from_dict({"width": 1, "shape": {"kind": "circel"}})


def test_a_part_of_the_user_goes_by_its_address_once_imported() -> None:
    star = CanvasSpec(width=1, shape=StarSpec(spikes=6))
    assert star.to_dict()["shape"] == {"kind": f"{__name__}:StarSpec", "spikes": 6}
    assert CanvasSpec.from_json(star.to_json()) == star


def test_a_spec_file_imports_nothing() -> None:
    """``antigravity`` opens a web browser when imported; a file must not be able to do that."""
    assert "antigravity" not in sys.modules
    with pytest.raises(
        UsageError, match=r"'antigravity:Spec' is not part of regard: import antigravity first"
    ):
        CanvasSpec.from_dict({"width": 1, "shape": {"kind": "antigravity:Spec"}})
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "kind",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "builtins:dict",
        f"{__name__}:CanvasSpec",
        f"{__name__}:x",
    ],
)
def test_a_kind_that_is_no_member_of_the_family_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=f"shape: kind '{kind}' is not a ShapeSpec"):
        CanvasSpec.from_dict({"width": 1, "shape": {"kind": kind, "radius": "touch /tmp/x"}})


# ---------------------------------------------------------------- overrides


def test_an_override_changes_what_it_names_and_nothing_else() -> None:
    changed = NESTED.override(["width=11", "shape.members.1.filled=true", "shape.members.0.radius=1e-3"])
    assert diff(NESTED, changed) == [
        ("width", 7, 11),
        ("shape.members.0.radius", 2.0, 0.001),
        ("shape.members.1.filled", False, True),
    ]
    assert NESTED.width == 7


def test_an_override_may_give_a_whole_part() -> None:
    changed = NESTED.override(["background={kind: circle, radius: 4}"])
    assert changed.background == CircleSpec(radius=4)
    assert changed.override(["background=null"]) == NESTED


def test_another_kind_comes_with_its_own_defaults() -> None:
    spec = CanvasSpec(width=1, shape=CircleSpec(radius=9))
    assert spec.override(["shape.kind=polygon"]).shape == PolygonSpec()
    assert spec.override(["shape.kind=circle"]) == spec


def test_another_kind_can_be_filled_in() -> None:
    spec = CanvasSpec(width=1, shape=CircleSpec(radius=9))
    changed = spec.override(["shape.kind=polygon", "shape.corners=8", "shape.filled=true"])
    assert changed.shape == PolygonSpec(corners=8, filled=True)
    message = refused("shape.kind=polygon", "shape.radius=8", of=spec)
    assert "there is no field 'shape.radius'" in message
    assert "corners" in message


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("widht=3", "--set widht: there is no field 'widht' (did you mean 'width'?)"),
        (
            "shape.members.1.corner=3",
            "no field 'shape.members.1.corner' (did you mean 'shape.members.1.corners'",
        ),
        ("shape.mebers.1.corners=3", "no field 'shape.mebers' (did you mean 'shape.members.1.corners'"),
        ("shape.members.2.corners=3", "no field 'shape.members.2'"),
        ("corners=3", "shape.members.1.corners"),
        ("width.deep=3", "no field 'width.deep'"),
        ("width", "--set takes key=value, got 'width'"),
        ("width=[1", "--set width: cannot read '[1'"),
        ("width=wide", "width: got 'wide': Input should be a valid integer"),
        ("width=", "width: got None: Input should be a valid integer"),
        ("width=-2", "width: got -2: Input should be greater than 0"),
        ("shape.members.1.corners=2.5", "shape.members.1.corners: got 2.5: Input should be a valid integer"),
        (
            "shape.members.1.colour=green",
            "shape.members.1.colour: got 'green': Input should be 'red' or 'blue'",
        ),
        ("shape.members.0.kind=circel", "shape.members.0: unknown kind 'circel' (did you mean 'circle'?)"),
        ("shape.members.0.kind=null", "shape.members.0: needs a 'kind'"),
        ("shape.members=[]", "shape.members: got []: Tuple should have at least 1 item"),
    ],
)
def test_an_override_that_cannot_be_done_says_why(assignment: str, said: str) -> None:
    message = refused(assignment)
    assert said in message
    assert message.startswith("--set ")


def test_an_override_path_may_have_spaces_around_it() -> None:
    assert NESTED.override([" width = 3"]).width == 3


# ---------------------------------------------------------------- digest, paths, diff


def test_a_digest_names_exactly_one_spec() -> None:
    # The rule is part of the format: a run folder made today must be recognised tomorrow.
    text = b'{"colour": "red", "corners": 3, "filled": false, "kind": "polygon"}'
    assert PolygonSpec().digest() == hashlib.sha256(text).hexdigest()[:12]
    assert CircleSpec(radius=2).digest() == CircleSpec(radius=2.0).digest()
    assert CanvasSpec(width=1, names={"a": 1, "b": 2}).digest() == (
        CanvasSpec(width=1, names={"b": 2, "a": 1}).digest()
    )


@given(left=canvases, right=canvases)
def test_digests_differ_exactly_when_specs_do(left: CanvasSpec, right: CanvasSpec) -> None:
    assert (left.digest() == right.digest()) == (left == right)
    assert CanvasSpec.from_yaml(left.to_yaml()).digest() == left.digest()


def test_paths_reach_every_leaf() -> None:
    assert NESTED.paths() == {
        "width": 7,
        "shape.kind": "group",
        "shape.members.0.kind": "circle",
        "shape.members.0.radius": 2.0,
        "shape.members.1.kind": "polygon",
        "shape.members.1.corners": 5,
        "shape.members.1.filled": False,
        "shape.members.1.colour": "red",
        "shape.frame": None,
        "background": None,
        "names": {},
    }


def test_diff_has_none_for_what_the_other_lacks() -> None:
    left, right = CanvasSpec(width=1), CanvasSpec(width=1, shape=PolygonSpec(filled=True))
    assert diff(left, right) == [
        ("shape.kind", "circle", "polygon"),
        ("shape.radius", 1.5, None),
        ("shape.corners", None, 3),
        ("shape.filled", None, True),
        ("shape.colour", None, "red"),
    ]


@given(left=canvases, right=canvases)
def test_diff_is_empty_exactly_for_equal_specs(left: CanvasSpec, right: CanvasSpec) -> None:
    assert diff(left, left) == []
    assert (diff(left, right) == []) == (left == right)
    assert [(key, b, a) for key, a, b in sorted(diff(left, right))] == sorted(diff(right, left))


def test_a_kind_and_its_fields_can_be_set_one_after_the_other() -> None:
    from regard.recipes.catalogue import recipe

    spec = recipe("luong").override(["search.kind=sampling", "search.temperature=0.5"])
    assert spec.search.to_dict()["temperature"] == 0.5
    with pytest.raises(UsageError, match="temprature"):
        recipe("luong").override(["search.kind=sampling", "search.temprature=0.5"])
