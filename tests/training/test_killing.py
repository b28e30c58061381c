"""Real processes, really killed: the run always goes on to the very same bits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def killing(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-m", "tests.training.killing", str(folder), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_kill_9_three_times(tmp_path: Path) -> None:
    result, _ = killing(tmp_path, "kill", "1", "3")
    assert result["killed"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_kill_9_many_times(tmp_path: Path, seed: int) -> None:
    result, _ = killing(tmp_path, "kill", str(100 + seed), "25")
    assert result["killed"] >= 25


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    return killing(tmp_path_factory.mktemp("stopped"), "stop")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_polite_stop_finishes_the_step_saves_and_says_how_to_go_on(
    stopped: tuple[dict[str, Any], str], name: str, code: int
) -> None:
    results, said = stopped
    assert results[name] == {"code": code, "step": 7, "equal": True}
    assert f"stopped by {name} after step 7; everything is saved: give the same command again" in said


def test_a_disk_that_fills_up_is_named_and_the_run_goes_on_later(stopped: tuple[dict[str, Any], str]) -> None:
    results, said = stopped
    # The limit comes with step 3; the checkpoint of that step does not fit, the one before it is whole.
    assert results["full"] == {"code": 1, "step": 2, "left": ["last", "previous", "validated"], "equal": True}
    assert "checkpoints/last: cannot be written: File too large" in said
    assert "still loads" in said
