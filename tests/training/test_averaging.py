"""Averages by hand, and against the sum that defines them."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.core.errors import RunError
from regard.training.averaging import MovingAverage, average_last
from regard.training.weights import to_bytes


def weights(value: float, count: int = 0) -> dict[str, Tensor]:
    return {"w": torch.full((2,), value, dtype=torch.float64), "count": torch.tensor(count)}


def test_moving_average_by_hand() -> None:
    average = MovingAverage(0.5, weights(100.0))
    means = []
    for step, value in enumerate([8.0, 2.0, 4.0], start=1):
        average.update(weights(value, step), step)
        means.append(average.weights["w"][0].item())
    # 8; (½·8 + 2)/(½ + 1); (¼·8 + ½·2 + 4)/(¼ + ½ + 1)
    assert means == pytest.approx([8.0, 4.0, 4.0])
    assert average.weights["count"].item() == 3


def test_moving_average_owns_its_memory() -> None:
    mine = weights(1.0)
    average = MovingAverage(0.9, mine)
    mine["w"].fill_(7.0)
    assert average.weights["w"].tolist() == [1.0, 1.0]


def test_moving_average_goes_on_after_loading() -> None:
    whole, first, second = (MovingAverage(0.7, weights(0.0)) for _ in range(3))
    for step in range(1, 6):
        whole.update(weights(float(step * step)), step)
    for step in range(1, 3):
        first.update(weights(float(step * step)), step)
    second.load(first.weights)
    for step in range(3, 6):
        second.update(weights(float(step * step)), step)
    assert torch.equal(whole.weights["w"], second.weights["w"])


def stored(folder: Path, *contents: dict[str, Tensor]) -> list[Path]:
    paths = [folder / f"{index}.safetensors" for index in range(len(contents))]
    for path, tensors in zip(paths, contents, strict=True):
        path.write_bytes(to_bytes(tensors))
    return paths


def test_average_of_files_by_hand(tmp_path: Path) -> None:
    paths = stored(tmp_path, weights(1.0, 1), weights(2.0, 2), weights(6.0, 3))
    mean = average_last(paths)
    assert mean["w"].tolist() == [3.0, 3.0]
    assert mean["count"].item() == 3
    assert mean["count"].dtype == torch.int64


def test_single_precision_weights_are_added_up_in_double(tmp_path: Path) -> None:
    big, small = torch.tensor([2.0**24]), torch.tensor([1.0])
    mean = average_last(stored(tmp_path, {"w": big}, {"w": small}, {"w": small}, {"w": -big}))
    assert mean["w"].dtype == torch.float32
    assert mean["w"].item() == 0.5


def test_files_of_different_models_are_not_averaged(tmp_path: Path) -> None:
    paths = stored(tmp_path, {"a": torch.zeros(1)}, {"b": torch.zeros(1)})
    with pytest.raises(RunError, match=r"1\.safetensors: holds other weights than .*0\.safetensors"):
        average_last(paths)
