"""Runs that teach: their vocabulary is taken over, and they are refused where they cannot."""

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.apps.training import spec_of_run, train
from regard.core.errors import UsageError
from regard.training.events import Stepped, Watcher
from tests.apps.conftest import Command
from tests.apps.toys import pairs, texts, toy

PAIRS, VALID = pairs(80), pairs(10, seed=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator, another with its vocabulary, a stranger, and language models that go two ways."""
    folder = tmp_path_factory.mktemp("teaching")
    train(toy("transformer"), PAIRS, folder / "one", valid=VALID, steps=2)
    train(toy("luong"), PAIRS, folder / "two", valid=VALID, steps=2, vocabulary=folder / "one")
    train(toy("transformer"), [("xyz zyx", "xyz")] * 40, folder / "stranger", valid=[("xyz", "x")], steps=2)
    train(toy("ngram", "model.order=3"), texts(80), folder / "counts", valid=texts(10, seed=1))
    return folder


def test_what_is_taught_has_the_vocabulary_of_its_teachers(folder: Path, tmp_path: Path) -> None:
    teachers = [folder / "one", folder / "two"]
    student = train(toy("bahdanau"), PAIRS, tmp_path, valid=VALID, steps=4, taught_by=teachers)
    assert student.run.lexicon.differs_from(regard.load(teachers[0]).lexicon) is None
    assert spec_of_run(tmp_path).teaching.runs == tuple(map(str, teachers))


def test_a_teacher_tells_what_the_data_do_not(folder: Path, tmp_path: Path) -> None:
    """Texts whose letters were shuffled say how often each occurs; what follows which, the teacher knows."""
    order = random.Random(3)
    shuffled = ["".join(order.sample(text, len(text))) for text in texts(80)]

    def loss(name: str, *settings: str, **more: object) -> float:
        asked = {"valid": texts(10, seed=1), "steps": 80, **more}
        trained = train(toy("char_lm", *settings), shuffled, tmp_path / name, **asked)  # type: ignore[arg-type]
        return trained.result.scores["loss"]

    alone = loss("alone", vocabulary=folder / "counts")
    taught = loss("taught", "teaching.share=1.0", taught_by=[folder / "counts"])
    assert taught < 0.6 * alone


def test_the_same_command_goes_on_with_the_same_teacher(folder: Path, tmp_path: Path) -> None:
    """Text that runs on, taught by counts: the teacher's place in it is kept, too."""
    system, given, valid = toy("char_lm"), texts(80), texts(10, seed=1)
    asked = {"valid": valid, "steps": 20, "taught_by": [folder / "counts"]}
    train(system, given, tmp_path / "whole", **asked)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="cut off"):
        train(system, given, tmp_path / "broken", watchers=[_CutOff(12)], **asked)  # type: ignore[arg-type]
    train(system, given, tmp_path / "broken", **asked)  # type: ignore[arg-type]
    whole, broken = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "broken"))
    assert all(torch.equal(whole[name], broken[name]) for name in whole)


@pytest.mark.parametrize(
    ("recipe", "more", "said"),
    [
        ("transformer", {"taught_by": ["stranger", "one"]}, "one cannot teach: its vocabulary for 'source'"),
        (
            "transformer",
            {"taught_by": ["one"], "start_from": "stranger"},
            "must have the same",
        ),
        (
            "transformer",
            {"taught_by": ["counts"]},
            "task.kind is 'continuation' there",
        ),
        ("ngram", {"taught_by": ["counts"]}, "only counts"),
    ],
)
def test_who_cannot_teach_is_refused_before_data_are_read(
    folder: Path, tmp_path: Path, recipe: str, more: dict[str, object], said: str
) -> None:
    def placed(value: object) -> object:
        return [folder / one for one in value] if isinstance(value, list) else folder / str(value)

    asked = {name: placed(value) for name, value in more.items()}
    with pytest.raises(UsageError, match=said):
        train(toy(recipe), tmp_path / "nothing.tsv", tmp_path / "out", **asked)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.fixture
def command(request: pytest.FixtureRequest) -> Command:
    found: Command = request.getfixturevalue("regard")
    return found


def test_the_command_says_what_is_wrong_with_a_teacher(
    folder: Path, tmp_path: Path, command: Command
) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    asked = ["train", "transformer", "--data", str(data), "--out", str(tmp_path / "out"), "--steps", "1"]
    refused = command(*asked, "--taught-by", str(tmp_path / "nobody"))
    assert refused.code == 2
    assert "nobody" in refused.err
    refused = command(*asked, "--taught-by", str(folder / "one"), "--set", "teaching.share=1.5")
    assert refused.code == 2
    assert "teaching.share" in refused.err


class _CutOff(Watcher):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, event: Stepped) -> None:
        if event.step == self.step:
            raise RuntimeError("cut off")
