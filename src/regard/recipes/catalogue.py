"""All recipes by name. Listing them imports nothing heavy; asking for one builds its spec."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

from regard.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.recipes.system import SystemSpec


class Entry(NamedTuple):
    where: str
    summary: str
    paper: str


RECIPES: dict[str, Entry] = {
    "seq2seq": Entry(
        "regard.recipes.recurrent:seq2seq",
        "LSTM encoder and decoder joined by the last state alone: the bottleneck, no attention",
        "Sutskever et al. 2014",
    ),
    "bahdanau": Entry(
        "regard.recipes.recurrent:bahdanau",
        "GRU decoder that looks at a bidirectional encoder before every step, additive score",
        "Bahdanau et al. 2015",
    ),
    "luong": Entry(
        "regard.recipes.recurrent:luong",
        "LSTM decoder that looks after every step, general score, input feeding",
        "Luong et al. 2015",
    ),
    "convs2s": Entry(
        "regard.recipes.convolutional:convs2s",
        "gated convolutions with attention in every decoder layer, learned positions",
        "Gehring et al. 2017",
    ),
    "transformer": Entry(
        "regard.recipes.transformer:transformer",
        "the Transformer in a size for a laptop: 3+3 layers, 256 wide",
        "Vaswani et al. 2017",
    ),
    "transformer_tiny": Entry(
        "regard.recipes.transformer:transformer_tiny",
        "4+4 layers, 128 wide, shared embeddings: best for tens of thousands of pairs",
        "Wu et al. 2021",
    ),
    "transformer_base": Entry(
        "regard.recipes.transformer:transformer_base",
        "the original size: 6+6 layers, 512 wide, 8 heads",
        "Vaswani et al. 2017",
    ),
}


def recipe(name: str) -> "SystemSpec":
    entry = RECIPES.get(name)
    if entry is None:
        raise UsageError(f"there is no recipe {name!r}{nearest(name, RECIPES)}")
    module, function = entry.where.split(":")
    spec: SystemSpec = getattr(importlib.import_module(module), function)()
    return spec
