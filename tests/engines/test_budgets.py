"""How much an engine is given at once: found out on real work, once."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from regard.engines.budgets import MANY, Budgets
from regard.engines.notes import Notes

SIZES = (20, 40, 10)


def budgets(path: Path | None = None, key: str = "here") -> Budgets:
    return Budgets(SIZES, Notes(path), key)


def work(
    found: Budgets, speed: Mapping[int, float], times: int, beam: int = 1, rows: int = MANY
) -> list[int]:
    """So many tasks, each of another length; which sizes were used."""
    used = []
    for turn in range(times):
        size, tokens = found.of(beam, rows), 1000 * (1 + turn % 3)
        used.append(size)
        found.took(beam, size, rows, tokens, tokens / speed[size])
    return used


@pytest.mark.parametrize("best", SIZES)
def test_each_is_tried_twice_and_the_fastest_stays(best: int) -> None:
    speed = {size: 2.0 if size == best else 1.9 for size in SIZES}
    used = work(budgets(), speed, 9)
    assert sorted(used[:6]) == sorted(SIZES * 2)
    assert used[6:] == [best] * 3


def test_a_moment_of_other_work_does_not_decide() -> None:
    found = budgets()
    for turn in range(6):
        size = found.of(1, MANY)
        disturbed = size == 40 and turn < 3
        found.took(1, size, MANY, 100, 9.0 if disturbed else 100 / {20: 1.0, 40: 1.2, 10: 0.9}[size])
    assert found.of(1, MANY) == 40


def test_little_work_is_given_out_as_usual_and_tells_nothing() -> None:
    found = budgets()
    assert set(work(found, dict.fromkeys(SIZES, 9.0), 20, rows=MANY - 1)) == {SIZES[0]}
    assert not found.known(1)
    assert work(found, {20: 1.0, 40: 2.0, 10: 1.0}, 7)[-1] == 40


def test_what_was_found_out_is_kept_for_this_machine_and_beam(tmp_path: Path) -> None:
    notes = tmp_path / "layouts.json"
    work(budgets(notes), {20: 1.0, 40: 2.0, 10: 1.0}, 6, beam=5)
    again = budgets(notes)
    assert again.known(5)
    assert again.of(5, 1) == 40
    assert not again.known(1)
    assert not budgets(notes, "another machine").known(5)
    notes.write_text("[]")
    assert not budgets(notes).known(5)


def test_notes_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for every line that is asked alone."""
    found, looked = budgets(), list[str]()
    monkeypatch.setattr(Notes, "of", lambda self, key: looked.append(key))
    for _ in range(5):
        found.of(1, 1)
        found.known(1)
    assert len(looked) == 1


def test_of_one_size_everything_is_known() -> None:
    found = Budgets((7,), Notes(None), "here")
    assert found.known(3)
    assert found.of(3, 10 * MANY) == 7
