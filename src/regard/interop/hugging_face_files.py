"""The files of a Hugging Face folder: JSON and safetensors, read with care.

Older folders hold their weights pickled. Those are read by torch's restricted reader, which builds tensors
and runs nothing; a file that wants more than that is refused.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from regard.core.errors import DataError, UsageError

CONFIG, GENERATION = "config.json", "generation_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED, PICKLED_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_FOREIGN = ("tf_model.h5", "flax_model.msgpack", "model.ckpt.index")


def read_json(path: Path, kind: type = dict) -> Any:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError("missing", file=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from None
    except ValueError as error:  # not UTF-8, or not JSON
        raise DataError(f"damaged or not JSON: {error}", file=path) from None
    if not isinstance(values, kind):
        raise DataError(f"expected a JSON {'object' if kind is dict else 'array'}", file=path)
    return values


def read_json_if_there(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = read_json(path) if path.exists() else {}
    return values


def to_json(values: Mapping[str, Any] | list[Any]) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder; nothing is fetched from a network")
    if not (folder / CONFIG).exists():
        found = ", ".join(sorted(item.name for item in folder.iterdir())[:5]) or "nothing"
        raise UsageError(f"{folder}: not a Hugging Face model: it holds no {CONFIG} (it holds {found})")
    config: dict[str, Any] = read_json(folder / CONFIG)
    return config


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All weights by name, as 32-bit numbers whatever they were stored as; one file or several."""
    found: dict[str, Tensor] = {}
    for path, names in _weight_files(folder).items():
        stored = _load_pickled(path) if path.suffix == ".bin" else _load(path)
        if missing := [name for name in names if name not in stored]:
            raise DataError(f"{missing[0]} is said to be in this file, but is not", file=path)
        found |= stored
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in found.items()}


def _weight_files(folder: Path) -> dict[Path, list[str]]:
    """The files with weights, each with the names that must be in it."""
    if (folder / WEIGHTS).exists():
        return {folder / WEIGHTS: []}
    if (folder / INDEX).exists():
        return _shards(folder / INDEX)
    if (folder / PICKLED).exists():
        return {folder / PICKLED: []}
    if (folder / PICKLED_INDEX).exists():
        return _shards(folder / PICKLED_INDEX)
    if foreign := [name for name in _FOREIGN if (folder / name).exists()]:
        raise UsageError(
            f"{folder / foreign[0]}: weights of another framework. Load the model with transformers and save "
            f"it again with save_pretrained: that writes {WEIGHTS}"
        )
    raise DataError(f"missing; there is no {INDEX} either", file=folder / WEIGHTS)


def _shards(index: Path) -> dict[Path, list[str]]:
    places = read_json(index).get("weight_map")
    if not isinstance(places, Mapping) or not places:
        raise DataError(
            "damaged: it does not say which file holds which weight", file=index, field="weight_map"
        )
    shards: dict[Path, list[str]] = {}
    for name, file in places.items():
        if not isinstance(file, str) or Path(file).name != file:
            raise DataError(f"{file!r} is not a file of this folder", file=index, field=f"weight_map: {name}")
        shards.setdefault(index.parent / file, []).append(name)
    return shards


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise DataError("missing", file=path) from None
    except SafetensorError as error:
        raise DataError(f"damaged or not a safetensors file: {error}", file=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


def _load_pickled(path: Path) -> dict[str, Tensor]:
    try:
        values = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise DataError("missing", file=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None
    except Exception as error:  # damaged, or more than tensors: torch has no one name for either
        said = type(error).__name__
        raise DataError(
            f"damaged, or holds more than tensors, which could run code and is not read ({said}). Load the "
            f"model with transformers and save it again with save_pretrained: that writes {WEIGHTS}",
            file=path,
        ) from None
    if not isinstance(values, Mapping) or not all(isinstance(value, Tensor) for value in values.values()):
        raise DataError("expected tensors by name", file=path)
    return dict(values)
