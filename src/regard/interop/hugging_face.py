"""Hugging Face folders: in as a system with its vocabulary and weights, out as transformers loads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from regard.core.errors import UsageError, nearest
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer
from regard.interop.bart import Bart
from regard.interop.encoders import ENCODERS
from regard.interop.family import Family, Offered
from regard.interop.gpt2 import Gpt2
from regard.interop.hugging_face_files import CONFIG, WEIGHTS, read_config, read_tensors, to_json
from regard.interop.marian import Marian
from regard.interop.renaming import to_ours, to_theirs
from regard.interop.saying import refuse_differences
from regard.interop.t5 import T5
from regard.recipes.system import SystemSpec
from regard.training.weights import named_weights

FAMILIES: dict[str, Family] = {
    "gpt2": Gpt2(),
    **ENCODERS,
    "t5": T5(),
    "bart": Bart(),
    "marian": Marian(),
}
"""By ``model_type``, as config.json calls it."""


class Taken(NamedTuple):
    """A model from elsewhere, in our terms."""

    system: SystemSpec
    lexicon: Lexicon
    weights: dict[str, Tensor]
    left: tuple[str, ...] = ()
    """Weights that were left behind, by their names."""


def read_folder(folder: Path) -> Taken:
    config = read_config(folder)
    if "model_type" in config:
        named(config["model_type"], folder / CONFIG)  # before anything large is read
    offered = Offered(folder, config, read_tensors(folder))
    family = named(config.get("model_type") or _guessed(offered.stored), folder / CONFIG)
    vocabulary = family.vocabulary(offered)
    system = family.system(offered, vocabulary)
    read, *others = system.data.fields
    texts = dict.fromkeys(others, vocabulary.tokenizer)
    lexicon = Lexicon({read: vocabulary.reads or vocabulary.tokenizer, **texts})
    with torch.device("meta"):  # names and shapes only
        model = system.model.build(lexicon.sizes)
    stored, left = family.wanted(offered, system)
    weights = to_ours(family.table(system), stored, named_weights(model), folder)
    return Taken(system, lexicon, weights, tuple(left))


def folder_files(
    system: SystemSpec, lexicon: Lexicon, weights: Mapping[str, Tensor], family: str | None = None
) -> dict[str, bytes]:
    """The content of a folder that ``from_pretrained`` loads, as the family named, or as the nearest one."""
    tokenizer, *others = lexicon.values()  # of several sizes they are refused by the model
    if any(other.size == tokenizer.size and other.to_json() != tokenizer.to_json() for other in others):
        raise UsageError(
            "what is read is cut otherwise than what is written: there is one tokenizer.json for both "
            "(--to ct2 has a vocabulary for each side)"
        )
    chosen = _nearest(system, tokenizer) if family is None else named(family, "--family")
    if system.model.kind() not in chosen.kinds:
        refuse_differences([f"model.kind is {system.model.kind()!r}"], chosen.title)
    config = chosen.config(system, tokenizer)
    refuse_differences(chosen.differences(system, config), chosen.title)
    theirs = chosen.given(to_theirs(chosen.table(system), weights), config)
    return {
        CONFIG: to_json(config),
        WEIGHTS: safetensors.torch.save(theirs, {"format": "pt"}),
        **chosen.files(system, tokenizer, config),
    }


def _nearest(system: SystemSpec, tokenizer: Tokenizer) -> Family:
    """The family that has a word for most of a system."""
    kind = system.model.kind()
    able = [family for family in FAMILIES.values() if kind in family.kinds]
    if not able:
        known = ", ".join(sorted({kind for family in FAMILIES.values() for kind in family.kinds}))
        raise UsageError(f"model.kind is {kind!r}, but folders of transformers are written for {known}")

    def distance(family: Family) -> tuple[int, bool]:
        lacking = family.differences(system, family.config(system, tokenizer))
        return len(lacking), not family.prefers(system, tokenizer)

    return min(able, key=distance)


def _guessed(names: Mapping[str, Tensor]) -> str | None:
    """Old configs do not say what they are of; weights are named after it, or are BERT's."""
    for kind, family in FAMILIES.items():
        if any(name.startswith(family.prefix) for name in names):
            return kind
    return "bert" if "embeddings.word_embeddings.weight" in names else None


def named(kind: Any, where: Path | str) -> Family:
    family = FAMILIES.get(str(kind))
    if family is None:
        known = ", ".join(FAMILIES)
        near = nearest(str(kind), FAMILIES) if kind is not None else ""
        near = near if "did you mean" in near else ""
        raise UsageError(f"{where}: model_type is {kind!r}, but regard reads {known}{near}")
    return family
