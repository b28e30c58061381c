"""Threads spin on a quiet machine and sleep on a busy one, and a user's own choice stands."""

from pathlib import Path

import pytest

from regard.core.waiting import SLEEP, SPIN, choose_spinning


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ("0.02 0.10 0.20 1/230 999", SPIN),
        ("1.30 0.90 0.20 1/230 999", SPIN),  # was busy, is not
        ("0.20 0.10 0.20 3/230 999", SPIN),  # a moment's work
        ("1.30 0.90 0.20 2/230 999", SLEEP),
        ("not a load", SLEEP),
    ],
)
def test_spinning_depends_on_what_the_machine_is_doing(load: str, expected: int, tmp_path: Path) -> None:
    path, environment = tmp_path / "loadavg", {}
    path.write_text(load)
    choose_spinning(environment, path)
    assert environment == {"GOMP_SPINCOUNT": str(expected)}


def test_without_knowledge_of_the_load_threads_sleep(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    choose_spinning(environment, tmp_path / "missing")
    assert environment == {"GOMP_SPINCOUNT": str(SLEEP)}


@pytest.mark.parametrize("chosen", [{"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "passive"}])
def test_a_users_choice_stands(chosen: dict[str, str], tmp_path: Path) -> None:
    environment = dict(chosen)
    choose_spinning(environment, tmp_path / "missing")
    assert environment == chosen
