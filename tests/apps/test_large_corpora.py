"""Training on files read in portions: the same command, the same promises."""

import json
import threading
from pathlib import Path

import pytest

from regard.apps.session import load
from regard.apps.training import train
from regard.core.errors import UsageError
from regard.recipes.system import SystemSpec
from tests.apps.conftest import Command
from tests.apps.test_recipes import KillAt, PowerCutError, losses_of, weights_of
from tests.apps.toys import pairs, toy

STEPS = 26
BPE = "{unit: bpe, size: 60, dropout: 0.1}"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))


def system() -> SystemSpec:
    limits = ("data.whole_limit=0", "data.portion_lines=256", "data.batch_tokens=300")
    return toy("bahdanau", f"data.source={BPE}", f"data.target={BPE}", *limits)


def write(path: Path) -> Path:
    rows = [*pairs(700), ("", "nothing"), ("a b " * 40, "x"), *pairs(90, seed=1)]
    path.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return path


def notices_of(folder: Path) -> list[str]:
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [event["message"] for event in events if event["event"] == "notice"]


def test_a_killed_run_ends_with_the_same_bits_and_tells_every_portion_once(tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.tsv")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(system(), data, whole, steps=STEPS, seed=3)
    for step in (3, 18):
        with pytest.raises(PowerCutError):
            train(system(), data, broken, steps=STEPS, seed=3, watchers=[KillAt(step)])
    train(system(), data, broken, steps=STEPS, seed=3)
    assert weights_of(broken) == weights_of(whole)
    assert losses_of(broken) == losses_of(whole)
    assert load(broken)("abc") == load(whole)("abc")
    epochs = {json.loads(line).get("epoch", 0) for line in (whole / "log.jsonl").read_text().splitlines()}
    assert max(epochs) >= 4, "more than one pass over four portions"
    told = notices_of(whole)
    assert notices_of(broken) == told
    places = [line.partition(":")[0] for line in told]
    assert places == sorted(set(places)), "each once, in order"
    assert set(places) <= {f"portion {n} of 4" for n in (1, 2, 3, 4)}
    assert sum("with an empty side" in line for line in told) == 1
    assert f"{data}:701" in " ".join(told)
    assert sum("longer than longest=64" in line for line in told) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("making")]


def test_a_run_in_portions_does_not_go_on_as_a_whole(tmp_path: Path) -> None:
    data, out = write(tmp_path / "pairs.tsv"), tmp_path / "run"
    train(system(), data, out, steps=2, seed=3)
    with pytest.raises(UsageError, match=r"data\.whole_limit is 0 there, 268435456 now"):
        train(system().override(["data.whole_limit=268435456"]), data, out, steps=2, seed=3)


def test_the_command_says_what_was_looked_at(regard: Command, tmp_path: Path) -> None:
    data, valid = write(tmp_path / "pairs.tsv"), tmp_path / "valid.tsv"
    valid.write_text("".join(f"{a}\t{b}\n" for a, b in pairs(9, seed=2)), encoding="utf-8")
    spec = tmp_path / "spec.yaml"
    spec.write_text(system().to_yaml(), encoding="utf-8")
    finished = regard(
        "train", spec, "--data", data, "--valid", valid, "--out", tmp_path / "run", "--steps", "2"
    )
    assert finished.code == 0
    assert "792 lines in 4 portions, 9 for validation" in finished.err
    assert "looked at so far: the first portion, " in finished.err
    assert "whether validation sources also occur in training is not counted" in finished.err
