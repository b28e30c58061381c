"""Kill -9 of the real command at random moments: the run ends with the bits of one that was never killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.apps.session import load
from tests.apps.test_recipes import losses_of, weights_of
from tests.apps.toys import pairs, toy

STEPS = 60


def command(folder: Path, out: Path) -> list[str]:
    spec, data = folder / "spec.yaml", folder / "pairs.tsv"
    if not spec.exists():
        spec.write_text(toy("bahdanau", "training.checkpoints.steps=2").to_yaml())
        data.write_text("".join(f"{a}\t{b}\n" for a, b in pairs(160)))
    options = ["--data", str(data), "--out", str(out), "--steps", str(STEPS), "--quiet"]
    return [sys.executable, "-m", "regard.apps", "train", str(spec), *options]


def steps_logged(out: Path) -> int:
    log = out / "log.jsonl"
    return log.read_text(errors="replace").count('"event": "step"') if log.exists() else 0


def kill_after(more: int, process: subprocess.Popen[bytes], out: Path) -> bool:
    """Kill once ``more`` further steps are in the log; False when the run ended before."""
    goal = steps_logged(out) + more
    while process.poll() is None:
        if steps_logged(out) >= goal:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.002)
    return False


def test_a_polite_stop_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with subprocess.Popen(command(tmp_path, out), stderr=subprocess.PIPE, text=True) as process:
        while steps_logged(out) < 5:
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        _, message = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert "the same command again" in message
    assert "Traceback" not in message
    stopped_at = steps_logged(out)
    subprocess.run(command(tmp_path, out), check=True)
    assert [step for step, _ in losses_of(out)] == list(range(1, STEPS + 1))
    assert stopped_at < STEPS


def killed_and_resumed(folder: Path, kills: int, seed: int) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole, broken = folder / "whole", folder / "broken"
    subprocess.run(command(folder, whole), check=True, env=environment)
    rng = random.Random(seed)
    most = max(1, STEPS // kills)
    done = 0
    while done < kills:
        with subprocess.Popen(command(folder, broken), env=environment) as process:
            done += kill_after(rng.randint(1, most), process, broken)
        assert steps_logged(broken) < STEPS, "all kills must fall into training"
    subprocess.run(command(folder, broken), check=True, env=environment)
    assert weights_of(broken) == weights_of(whole)
    assert losses_of(broken) == losses_of(whole)
    assert load(broken)("abc") == load(whole)("abc")


def test_three_kills(tmp_path: Path) -> None:
    killed_and_resumed(tmp_path, kills=3, seed=0)


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    killed_and_resumed(tmp_path, kills=20, seed=1)
