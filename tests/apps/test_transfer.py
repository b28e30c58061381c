"""What one model has learned goes over to another, bit by bit, through ``--from``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import regard
from regard.apps.training import Listener, train
from regard.core.errors import UsageError
from regard.recipes.catalogue import recipe
from regard.training.weights import Transfer, read_weights
from tests.apps.toys import labelled_pairs, tagged, texts, toy

STARTS = ("bert", "albert", "electra", "elmo", "awd_lstm", "gpt_tiny")
WORDS = ("data.tokenizer={unit: blank, size: 100}",)
DATA: dict[str, Callable[[], list[Any]]] = {
    "classifier": lambda: [(text, text[0]) for text in texts(40)],
    "pair_classifier": lambda: labelled_pairs(40),
    "tagger": lambda: tagged(40),
}


class Told(Listener):
    transfer: Transfer | None = None

    def on_model(self, parameters: int, transfer: Transfer | None) -> None:
        self.transfer = transfer


class Started(dict[str, Path]):
    """Each trained a little, when it is first wanted."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        unit = "data.tokenizer={unit: blank, size: 100, hides: true}"
        system = toy(name, unit) if recipe(name).data.kind() == "passages" else toy(name, *WORDS)
        self[name] = train(system, texts(80), self.folder / name, valid=texts(20, 1), steps=2).run.path
        return self[name]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return Started(tmp_path_factory.mktemp("starts"))


def weights(path: Path) -> dict[str, Tensor]:
    return read_weights(path / "model.safetensors")


def reading(path: Path) -> dict[str, Tensor]:
    """What reads of a run, by names without the first word."""
    parts = ("embedding.", "stack.")
    named = {name.partition(".")[2]: tensor for name, tensor in weights(path).items()
             if name.startswith(("encoder.", "decoder."))}  # fmt: skip
    return {name: tensor for name, tensor in named.items() if name.startswith(parts)}


def go_on(name: str, start: Path, out: Path, *settings: str, steps: int = 1) -> tuple[regard.Run, Transfer]:
    told = Told()
    data = DATA[name]() if name in DATA else texts(40)
    common = ["training.validation.every=10", "training.schedule.peak=0.01"]
    if name in DATA:
        common.append("evaluation.examples=4")
    run = train(
        name, data, out, valid=data[:8], steps=steps, settings=[*common, *settings], start_from=start,
        listener=told,
    ).run  # fmt: skip
    assert told.transfer is not None
    return run, told.transfer


@pytest.mark.parametrize(
    ("start", "name"),
    [*((start, "classifier") for start in STARTS), ("bert", "pair_classifier"), ("elmo", "pair_classifier"),
     ("bert", "tagger"), ("elmo", "tagger"), ("awd_lstm", "tagger")],
)  # fmt: skip
def test_weights_that_arrive_are_those_that_left(
    start: str, name: str, started: dict[str, Path], tmp_path: Path
) -> None:
    run, transfer = go_on(name, started[start], tmp_path / "run", "training.thawing.freeze=all")
    there, here = reading(started[start]), reading(run.path)
    assert there
    added = {key for key in here if key.startswith("embedding.letters.")}
    assert here.keys() - added == there.keys()
    here = {key: here[key] for key in there}
    # A language model gets tokens around its texts, with rows behind those it has.
    assert all(torch.equal(tensor[: len(there[key])], there[key]) for key, tensor in here.items())
    new = ("head.", "encoder.mix.", "encoder.embedding.letters.")
    assert all(key.startswith(new) for key in transfer.untouched)
    old = regard.load(started[start]).lexicon["text"].vocabulary()
    assert run.lexicon["text"].vocabulary().items() >= old.items()


def test_all_of_it_learns_on(started: dict[str, Path], tmp_path: Path) -> None:
    for start in ("elmo", "awd_lstm"):
        run, _ = go_on("classifier", started[start], tmp_path / start)
        there, here = reading(started[start]), reading(run.path)
        same = [key for key, tensor in here.items() if tensor.numel() and torch.equal(tensor, there[key])]
        assert same == [], start


def test_a_task_learns_how_much_of_each_layer_it_needs(started: dict[str, Path], tmp_path: Path) -> None:
    settings = ("training.thawing.freeze=all", "training.validation.every=4")
    run, _ = go_on("tagger", started["elmo"], tmp_path / "run", *settings, steps=4)
    shares = weights(run.path)["encoder.mix.weights"]
    assert shares.shape == (4,)
    assert len(set(shares.tolist())) == 4
    assert run("x aa unheardof")


def test_the_three_stages_of_a_language_model(started: dict[str, Path], tmp_path: Path) -> None:
    """General text, then that of the task with its new words, then its classes."""
    general = started["awd_lstm"]
    told = Told()
    given = [text.replace("abc", "new words") for text in texts(40)]
    target = train("ulmfit_lm", given, tmp_path / "lm", valid=given[:8], steps=1, start_from=general,
                   listener=told, settings=["training.schedule.peak=1e-30", "data.rows=4"]).run  # fmt: skip
    assert told.transfer is not None
    assert told.transfer.untouched == told.transfer.unused == []
    assert len(told.transfer.grown) == 1
    there, here = (weights(path)["decoder.embedding.tokens.weight"] for path in (general, target.path))
    known = regard.load(general).lexicon["text"].vocabulary()
    grown = target.lexicon["text"].vocabulary()
    assert {word for word in grown if word not in known} == {"▁new", "▁words"}
    assert {word: grown[word] for word in known} == known
    torch.testing.assert_close(here[: len(there)], there, rtol=0, atol=1e-12)
    assert len(here) == len(there) + 2
    # The same command goes on, with the same vocabulary.
    again = train("ulmfit_lm", given, tmp_path / "lm", valid=given[:8], steps=2, start_from=general,
                  settings=["training.schedule.peak=1e-30", "data.rows=4"]).run  # fmt: skip
    assert again.lexicon["text"].vocabulary() == grown
    labelled = [(text, text.split()[0]) for text in given]
    run = train("ulmfit", labelled, tmp_path / "classes", valid=labelled[:8], steps=1,
                start_from=target.path, settings=["training.validation.every=1"]).run  # fmt: skip
    assert run.spec.training.to_dict()["thawing"]["freeze"] == "gradual"
    before, after = reading(target.path), reading(run.path)
    assert all(torch.equal(tensor, before[key]) for key, tensor in after.items())
    assert weights(run.path)["head.between.weight"].shape[1] == 3 * 24
    assert run(["new words ghij"])[0] in {label for _, label in labelled}


def test_what_does_not_fit_is_told(started: dict[str, Path], tmp_path: Path) -> None:
    smaller = ["model.encoder.embedding.width=12", "model.encoder.stack.blocks.0.mixers.1.hidden=8"]
    with pytest.raises(UsageError, match=r"encoder\.embedding\.tokens\.weight is .*24\] float32 there, but"):
        go_on("classifier", started["bert"], tmp_path / "one", *smaller)
    with pytest.raises(UsageError, match="goes on with a language model, not one of kind 'masked'"):
        go_on("ulmfit_lm", started["bert"], tmp_path / "two")
    with pytest.raises(UsageError, match="no token for what is hidden"):
        train(toy("bert"), texts(40), tmp_path / "three", valid=texts(8), steps=1, start_from=started["elmo"])


def test_it_says_where_it_came_from(started: dict[str, Path], tmp_path: Path) -> None:
    run, _ = go_on("classifier", started["elmo"], tmp_path / "run")
    record = json.loads((run.path / "regard.json").read_text())
    assert record["spec"]["data"]["letters"] is True
    assert record["spec"]["model"]["encoder"]["mix"] == {"norm": False}
    assert record["spec"]["data"]["layout"]["begin"] is False
