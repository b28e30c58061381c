"""Messages for people: the place first, then what is wrong, then the way out."""

from pathlib import Path

import pytest

from regard.core.errors import DataError, RegardError, RunError, TrainingError, UsageError, nearest


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({}, "bad"),
        ({"file": "a.tsv"}, "a.tsv: bad"),
        ({"file": Path("a.tsv"), "line": 7}, "a.tsv:7: bad"),
        ({"file": "a.tsv", "line": 7, "field": "target"}, "a.tsv:7: target: bad"),
        ({"file": "a.tsv", "field": "target"}, "a.tsv: target: bad"),
        ({"line": 7}, "line 7: bad"),
        ({"field": "target"}, "target: bad"),
        ({"file": "a.tsv", "line": 0}, "a.tsv:0: bad"),
    ],
)
def test_a_data_error_begins_with_its_place(place: dict[str, object], message: str) -> None:
    error = DataError("bad", **place)
    assert str(error) == message
    assert (error.file, error.line, error.field) == (place.get("file"), place.get("line"), place.get("field"))


@pytest.mark.parametrize(
    ("kind", "code"), [(UsageError, 2), (DataError, 2), (RunError, 2), (TrainingError, 1), (RegardError, 1)]
)
def test_every_error_is_a_regard_error_with_its_exit_code(kind: type[RegardError], code: int) -> None:
    error = kind("text")
    assert isinstance(error, RegardError)
    assert error.exit_code == code
    assert str(error) == "text"


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("gnu", ["lstm", "gru", "rnn"], " (did you mean 'gru'?)"),
        ("heds", ["heads", "shed", "radius"], " (did you mean 'heads' or 'shed'?)"),
        ("zzz", ["b", "a", "a"], " (there are: a, b)"),
        ("", ["b", "a"], " (there are: a, b)"),
        ("anything", [], ""),
    ],
)
def test_nearest_names_what_may_have_been_meant(name: str, options: list[str], hint: str) -> None:
    assert nearest(name, options) == hint


def test_nearest_does_not_flood() -> None:
    hint = nearest("zzz", [f"option{i:02}" for i in range(13)])
    assert hint.endswith("option11, …)")
    assert "option12" not in hint
    assert nearest("zzz", [f"option{i:02}" for i in range(12)]).endswith("option11)")
    assert nearest("option", [f"option{i}" for i in range(9)]).count("option") == 3
