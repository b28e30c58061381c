"""Hugging Face folders: in as a system with its vocabulary and weights, out as transformers loads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from regard.core.errors import UsageError, nearest
from regard.data.lexicon import Lexicon
from regard.interop.family import Family
from regard.interop.gpt2 import Gpt2
from regard.interop.hugging_face_files import CONFIG, GENERATION, WEIGHTS, read_config, read_tensors, to_json
from regard.interop.hugging_face_tokenizers import read_tokenizer, write_tokenizer
from regard.interop.renaming import to_ours, to_theirs
from regard.recipes.system import SystemSpec
from regard.training.weights import named_weights

FAMILIES: dict[str, Family] = {"gpt2": Gpt2()}
"""By ``model_type``, as config.json calls it."""


class Taken(NamedTuple):
    """A model from elsewhere, in our terms."""

    system: SystemSpec
    lexicon: Lexicon
    weights: dict[str, Tensor]


def read_folder(folder: Path) -> Taken:
    config = read_config(folder)
    family = _family(config, folder / CONFIG)
    found = read_tokenizer(folder, config)
    system = family.system(config, found.tokenizer, found.opened, folder / CONFIG)
    lexicon = Lexicon(dict.fromkeys(system.data.fields, found.tokenizer))
    with torch.device("meta"):  # names and shapes only
        model = system.model.build(lexicon.sizes)
    stored = family.wanted(read_tensors(folder), system, folder)
    weights = to_ours(family.table(system), stored, named_weights(model), folder)
    return Taken(system, lexicon, weights)


def folder_files(system: SystemSpec, lexicon: Lexicon, weights: Mapping[str, Tensor]) -> dict[str, bytes]:
    """The content of a folder that ``from_pretrained`` loads."""
    family = FAMILIES["gpt2"]
    tokenizer = next(iter(lexicon.values()))  # a system with several is refused by its model
    config = family.config(system, tokenizer)
    opened = bool(system.task.to_dict().get("opened", True))
    theirs = to_theirs(family.table(system), weights)
    marks = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    return {
        CONFIG: to_json(config),
        GENERATION: to_json(marks),
        WEIGHTS: safetensors.torch.save(theirs, {"format": "pt"}),
        **write_tokenizer(tokenizer, opened, config.get("n_positions")),
    }


def _family(config: Mapping[str, Any], where: Path) -> Family:
    kind = config.get("model_type")
    family = FAMILIES.get(str(kind))
    if family is None:
        known = ", ".join(FAMILIES)
        near = nearest(str(kind), FAMILIES) if kind is not None else ""
        near = near if "did you mean" in near else ""
        raise UsageError(f"{where}: model_type is {kind!r}, but regard reads {known}{near}")
    return family
