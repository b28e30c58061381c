"""What is frozen stays to the bit, what thaws learns, and depth counts from the words up."""

from pathlib import Path

import pytest
import torch

from regard.apps.training import train
from regard.models.labeller import Labeller
from regard.training.thawing import Thawing, ThawingSpec, depths_of
from regard.training.weights import read_weights
from tests.apps.toys import examples, toy


def model() -> Labeller:
    spec = toy("classifier", "model.encoder.stack.blocks.0.repeat=2").model
    built = spec.build({"text": 20, "label": 3})
    assert isinstance(built, Labeller)
    return built


def test_depth_counts_from_the_embedding_to_the_head() -> None:
    depths = depths_of(model())
    assert {name.split(".")[1]: depth for name, depth in depths.items() if "embedding" in name} == {
        "embedding": 0
    }
    assert {depth for name, depth in depths.items() if ".layers.0." in name} == {1}
    assert {depth for name, depth in depths.items() if ".layers.1." in name} == {2}
    assert {depth for name, depth in depths.items() if name.startswith("head.")} == {3}


@pytest.mark.parametrize("freeze", ["all", "embeddings", "gradual"])
def test_letters_that_are_added_are_new_and_learn_from_the_first(freeze: str) -> None:
    built = toy("tagger", "model.encoder.embedding.letters={}").model.build({"text": 20, "label": 3})
    thawing = Thawing(ThawingSpec.from_dict({"freeze": freeze}), built)
    thawing.at(0)
    added = {name: weight for name, weight in built.named_parameters() if ".letters." in name}
    assert added
    assert all(weight.requires_grad for weight in added.values())
    assert {thawing.rates()[name] for name in added} == {1.0}
    assert not built.get_parameter("encoder.embedding.tokens.weight").requires_grad


@pytest.mark.parametrize(
    ("freeze", "epoch", "learning"),
    [
        ("none", 0, {0, 1, 2, 3}),
        ("all", 9, {3}),
        ("embeddings", 0, {1, 2, 3}),
        ("gradual", 0, {3}),
        ("gradual", 1, {2, 3}),
        ("gradual", 2, {1, 2, 3}),
        ("gradual", 3, {0, 1, 2, 3}),
        ("gradual", 8, {0, 1, 2, 3}),
    ],
)
def test_which_depths_learn(freeze: str, epoch: int, learning: set[int]) -> None:
    built = model()
    thawing = Thawing(ThawingSpec.from_dict({"freeze": freeze}), built)
    thawing.at(epoch)
    found = {thawing.depths[name] for name, weight in built.named_parameters() if weight.requires_grad}
    assert found == learning
    thawing.end()
    assert all(weight.requires_grad for weight in built.parameters())


def test_rates_fall_towards_the_words() -> None:
    thawing = Thawing(ThawingSpec(layer_decay=0.5), model())
    by_depth = {thawing.depths[name]: rate for name, rate in thawing.rates().items()}
    assert by_depth == {3: 1.0, 2: 0.5, 1: 0.25, 0: 0.125}


@pytest.mark.parametrize(("freeze", "still"), [("all", "encoder."), ("embeddings", "encoder.embedding.")])
def test_frozen_weights_stay_to_the_bit(tmp_path: Path, freeze: str, still: str) -> None:
    given, valid = examples("classifier", 80), examples("classifier", 16, seed=1)
    train(toy("classifier"), given, tmp_path / "a", valid=valid, steps=10, seed=3)
    spec = toy("classifier", f"training.thawing.freeze={freeze}")
    train(spec, given, tmp_path / "b", valid=valid, steps=10, seed=4, start_from=tmp_path / "a")
    before, after = (read_weights(tmp_path / name / "model.safetensors") for name in "ab")
    for name, weight in after.items():
        assert torch.equal(weight, before[name]) == name.startswith(still), name


def test_a_slower_layer_moves_less(tmp_path: Path) -> None:
    given, valid = examples("classifier", 80), examples("classifier", 16, seed=1)
    train(toy("classifier"), given, tmp_path / "a", valid=valid, steps=5, seed=3)
    moved = {}
    for decay in (1.0, 0.1):
        spec = toy("classifier", f"training.thawing.layer_decay={decay}")
        out = tmp_path / str(decay)
        train(spec, given, out, valid=valid, steps=5, seed=4, start_from=tmp_path / "a")
        before, after = (read_weights(path / "model.safetensors") for path in (tmp_path / "a", out))
        moved[decay] = {name: float((after[name] - before[name]).abs().mean()) for name in after}
    embedding = "encoder.embedding.tokens.weight"
    assert moved[0.1][embedding] < 0.2 * moved[1.0][embedding]
    assert moved[0.1]["head.answers.weight"] > 0.5 * moved[1.0]["head.answers.weight"]
