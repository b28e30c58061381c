"""Checkpoints are whole or refused: torn writes, flipped bits, full disks."""

import errno
import json
import os
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.core.errors import RunError, TrainingError
from regard.training import checkpoint as checkpoints
from regard.training import durable
from regard.training.checkpoint import Checkpoint, Generations


def make(step: int) -> Checkpoint:
    generator = torch.Generator().manual_seed(step)
    weights: dict[str, Tensor] = {"a.weight": torch.randn(3, 5, generator=generator), "b": torch.tensor(step)}
    moments = {"a.weight.exp_avg": torch.randn(3, 5, generator=generator)}
    averages = {"a.weight": torch.randn(3, 5, generator=generator)}
    carried = {"0000": torch.full((2, 3), float(step))}
    return Checkpoint(
        weights, moments, averages, carried, {"step": step, "best": 0.1 + step / 3, "window": [1, 2]}
    )


def same(a: Checkpoint, b: Checkpoint) -> bool:
    return a.state == b.state and all(
        x.keys() == y.keys() and all(torch.equal(x[name], y[name]) for name in x)
        for x, y in ((a.weights, b.weights), (a.optimiser, b.optimiser), (a.averages, b.averages))
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    checkpoints.write(tmp_path / "c", make(7))
    assert same(checkpoints.read(tmp_path / "c"), make(7))


def test_equal_checkpoints_are_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        checkpoints.write(tmp_path / name, make(7))
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_the_manifest_is_written_last_and_covers_every_file(tmp_path: Path) -> None:
    order: list[str] = []

    def write(path: Path, content: bytes) -> None:
        order.append(path.name)
        durable.write_synced(path, content)

    checkpoints.write(tmp_path / "c", make(1), write)
    assert order[-1] == "manifest.json"
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    assert sorted(manifest["files"]) == sorted(order[:-1])
    assert sorted(order) == sorted(file.name for file in (tmp_path / "c").iterdir())


FILES = [
    "weights.safetensors",
    "optimiser.safetensors",
    "averages.safetensors",
    "state.json",
    "manifest.json",
]


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit_is_refused_by_name(tmp_path: Path, name: str) -> None:
    checkpoints.write(tmp_path / "c", make(3))
    path = tmp_path / "c" / name
    good = path.read_bytes()
    chosen = random.Random(name).sample(range(8 * len(good)), k=60)
    for bit in [0, 8 * len(good) - 1, *chosen]:
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with pytest.raises(RunError, match=f"{path}: damaged"):
            checkpoints.read(tmp_path / "c")
    path.write_bytes(good)
    checkpoints.read(tmp_path / "c")


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_longer_or_missing_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    checkpoints.write(tmp_path / "c", make(3))
    path = tmp_path / "c" / name
    good = path.read_bytes()
    for bad in (b"", good[:1], good[: len(good) // 2], good[:-1], good + b" "):
        path.write_bytes(bad)
        with pytest.raises(RunError, match=str(path)):
            checkpoints.read(tmp_path / "c")
    path.unlink()
    with pytest.raises(RunError, match=f"{path}: missing"):
        checkpoints.read(tmp_path / "c")


def test_a_checkpoint_mixed_from_two_is_refused(tmp_path: Path) -> None:
    checkpoints.write(tmp_path / "a", make(1))
    checkpoints.write(tmp_path / "b", make(2))
    (tmp_path / "b" / "weights.safetensors").replace(tmp_path / "a" / "weights.safetensors")
    with pytest.raises(RunError, match=r"weights\.safetensors: damaged"):
        checkpoints.read(tmp_path / "a")


def test_two_generations_are_kept(tmp_path: Path) -> None:
    generations = Generations(tmp_path / "checkpoints")
    assert not generations.exist()
    for step in (1, 2, 3):
        generations.write(make(step))
    assert checkpoints.read(generations.last).state["step"] == 3
    assert checkpoints.read(generations.previous).state["step"] == 2
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["last", "previous"]


def test_going_back_keeps_the_good_one_until_a_better_is_written(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    for step in (1, 2):
        generations.write(make(step))
    (generations.last / "state.json").write_text("{}")
    found, notice = Generations(tmp_path).read()
    assert found.state["step"] == 1
    assert notice is not None
    assert str(generations.last / "state.json") in notice

    again = Generations(tmp_path)
    again.read()
    again.write(make(5))
    assert checkpoints.read(again.last).state["step"] == 5
    assert checkpoints.read(again.previous).state["step"] == 1


class Full:
    """A disk with room for so many bytes; the file that does not fit is left half written."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, path: Path, content: bytes) -> None:
        durable.write_synced(path, content[: self.room])
        if len(content) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        self.room -= len(content)


@pytest.mark.parametrize("room", [0, 100, 400, 700, 1000, 1300])
def test_a_full_disk_is_named_and_leaves_the_old_checkpoint(tmp_path: Path, room: int) -> None:
    Generations(tmp_path).write(make(1))
    with pytest.raises(TrainingError, match=r"No space left on device.*before it still loads.*last"):
        Generations(tmp_path, Full(room)).write(make(2))
    assert [path.name for path in tmp_path.iterdir()] == ["last"]
    assert Generations(tmp_path).read()[0].state["step"] == 1


def test_a_full_disk_at_the_first_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="No space left on device; nothing was saved yet"):
        Generations(tmp_path / "checkpoints", Full(10)).write(make(1))
    assert not Generations(tmp_path / "checkpoints").exist()


class Gone(BaseException):
    """The process is gone: nobody cleans up."""


def killed_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """The ``moment``-th change to the disk, and all after it, do not happen."""
    left = [moment]

    def limited(original):  # type: ignore[no-untyped-def]
        def call(*args, **options):  # type: ignore[no-untyped-def]
            left[0] -= 1
            if left[0] <= 0:
                raise Gone
            return original(*args, **options)

        return call

    monkeypatch.setattr("os.fsync", limited(os.fsync))
    monkeypatch.setattr("os.rename", limited(os.rename))
    monkeypatch.setattr("os.mkdir", limited(os.mkdir))
    monkeypatch.setattr("os.unlink", limited(os.unlink))
    monkeypatch.setattr("os.rmdir", limited(os.rmdir))
    # rmtree is how a living process cleans up
    monkeypatch.setattr("shutil.rmtree", limited(checkpoints.shutil.rmtree))


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("moment", range(1, 24))
def test_killed_at_any_moment_of_a_write_a_whole_checkpoint_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, damaged: bool
) -> None:
    for step in (1, 2):
        Generations(tmp_path).write(make(step))
    good = 2
    if damaged:
        (tmp_path / "last" / "state.json").write_text("{}")
        good = 1
    writer = Generations(tmp_path)
    writer.read()
    with monkeypatch.context() as patch:
        killed_at(patch, moment)
        try:
            writer.write(make(3))
            complete = True
        except Gone:
            complete = False
    after = Generations(tmp_path)
    after.clean()
    found, _ = after.read()
    assert found.state["step"] in ((3,) if complete else (good, 3))
    assert same(found, make(int(str(found.state["step"]))))
    after.write(make(4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last", "previous"]
    assert checkpoints.read(after.last).state["step"] == 4
    checkpoints.read(after.previous)


def test_nothing_is_pickled(tmp_path: Path) -> None:
    checkpoints.write(tmp_path / "c", make(1))
    assert {path.suffix for path in (tmp_path / "c").iterdir()} == {".safetensors", ".json"}
