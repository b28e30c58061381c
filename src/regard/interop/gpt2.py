"""GPT-2 (Radford et al. 2019): its config, and the names of its weights."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.core.spec import diff
from regard.data.text import TextSpec
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.interop.family import Family
from regard.interop.renaming import Renamed
from regard.models.language_model import LanguageModelSpec
from regard.recipes.gpt import gpt_model
from regard.recipes.running_text import running_text
from regard.recipes.system import SystemSpec
from regard.training.optimisation import AdamW

_BLOCK = "decoder.stack.blocks.0"


class Said(NamedTuple):
    """One thing that both a config and a spec say."""

    config: str
    usual: Any
    """What is meant where a config is silent."""
    places: tuple[str, ...]
    """In the spec of the model."""
    words: dict[Any, str] | None = None
    """Theirs to ours, where they call it differently; of several that mean the same, the first is written."""


_ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
SAID = (
    Said("n_embd", 768, ("decoder.embedding.width",)),
    Said("n_positions", 1024, ("decoder.embedding.positions.longest",)),
    Said("embd_pdrop", 0.1, ("decoder.embedding.dropout",)),
    Said("n_layer", 12, (f"{_BLOCK}.repeat",)),
    Said("n_head", 12, (f"{_BLOCK}.mixers.0.heads",)),
    Said("attn_pdrop", 0.1, (f"{_BLOCK}.mixers.0.dropout",)),
    Said("scale_attn_weights", True, (f"{_BLOCK}.mixers.0.score.kind",), {True: "scaled", False: "dot"}),
    Said("n_inner", None, (f"{_BLOCK}.mixers.1.hidden",)),
    Said("activation_function", "gelu_new", (f"{_BLOCK}.mixers.1.activation",), _ACTIVATIONS),
    Said("resid_pdrop", 0.1, (f"{_BLOCK}.join.dropout",)),
    Said("layer_norm_epsilon", 1e-5, (f"{_BLOCK}.join.norm.epsilon", "decoder.stack.final_norm.epsilon")),
    Said("tie_word_embeddings", True, ("tied",)),
)
_BEYOND = {
    "scale_attn_by_inverse_layer_idx": "scores that shrink from layer to layer",
    "reorder_and_upcast_attn": "attention computed in another order and precision",
    "add_cross_attention": "memory to look at",
}
"""Switches of GPT-2 that regard has no part for."""


class Gpt2(Family):
    title = "GPT-2"

    def system(
        self, config: Mapping[str, Any], tokenizer: Tokenizer, opened: bool, where: Path
    ) -> SystemSpec:
        model = _model(config, where)
        positions = int(model.paths()["decoder.embedding.positions.longest"])  # type: ignore[arg-type]
        data = TextSpec(
            tokenizer=TokenizerSpec(unit="imported", size=tokenizer.size), window=positions, rows=8
        )
        # A model that has learned already goes on at a low rate.
        optimiser = AdamW(weight_decay=0.1, betas=(0.9, 0.95))
        system = running_text(data, model, optimiser, peak=1e-4, warmup=100)
        return system.override([f"task.opened={str(opened).lower()}"])

    def config(self, system: SystemSpec, tokenizer: Tokenizer) -> dict[str, Any]:
        leaves = system.model.paths()
        said = {row.config: _their_word(row, leaves.get(row.places[0])) for row in SAID}
        config: dict[str, Any] = {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "vocab_size": tokenizer.size,
            **{name: value for name, value in said.items() if value is not None},
            # Every document begins after an end.
            "bos_token_id": tokenizer.end,
            "eos_token_id": tokenizer.end,
            "pad_token_id": tokenizer.pad,
            "dtype": "float32",
        }
        # Read back, it must be the same model: whatever differs, GPT-2 has no word for.
        differences = [
            f"model.{path} is {ours!r} (GPT-2: {theirs!r})"
            for path, theirs, ours in diff(_model(config, Path("config.json")), system.model)
        ]
        differences += [
            f"{path} is {value!r} (GPT-2: {usual!r})"
            for path, usual in (("data.backwards", False), ("task.backwards", False))
            if (value := system.paths().get(path, usual)) != usual
        ]
        if differences:
            more = f" and {len(differences) - 4} more" if len(differences) > 4 else ""
            raise UsageError(f"this run is no GPT-2: {'; '.join(differences[:4])}{more}")
        return config

    def table(self, system: SystemSpec) -> list[Renamed]:
        leaves = system.model.paths()
        rows = [
            Renamed("decoder.embedding.tokens.weight", "transformer.wte.weight"),
            Renamed("decoder.embedding.positions.table.weight", "transformer.wpe.weight"),
        ]
        for layer in range(int(leaves[f"{_BLOCK}.repeat"])):  # type: ignore[arg-type]
            ours, theirs = f"decoder.stack.layers.{layer}", f"transformer.h.{layer}"
            rows += [
                *_both(f"{ours}.joins.0.norm", f"{theirs}.ln_1"),
                *_both(f"{ours}.mixers.0.project", f"{theirs}.attn.c_attn", transposed=True),
                *_both(f"{ours}.mixers.0.out", f"{theirs}.attn.c_proj", transposed=True),
                *_both(f"{ours}.joins.1.norm", f"{theirs}.ln_2"),
                *_both(f"{ours}.mixers.1.network.widen", f"{theirs}.mlp.c_fc", transposed=True),
                *_both(f"{ours}.mixers.1.network.narrow", f"{theirs}.mlp.c_proj", transposed=True),
            ]
        rows += _both("decoder.stack.final_norm", "transformer.ln_f")
        if not leaves["tied"]:
            rows.append(Renamed("decoder.head.words.weight", "lm_head.weight"))
        return rows

    def wanted(self, stored: Mapping[str, Tensor], system: SystemSpec, where: Path) -> dict[str, Tensor]:
        """A model saved without its head has names without "transformer."; older ones keep their masks."""
        found = {
            name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}": tensor
            for name, tensor in stored.items()
            if not _MASK.search(name)
        }
        words, head = found.get("transformer.wte.weight"), found.get("lm_head.weight")
        if system.model.paths()["tied"] and words is not None and head is not None:
            if not torch.equal(words, head):
                raise DataError(
                    "lm_head.weight differs from transformer.wte.weight, but config.json says they are one "
                    "(tie_word_embeddings)",
                    file=where,
                )
            del found["lm_head.weight"]
        return found


_MASK = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)$")


def _model(config: Mapping[str, Any], where: Path) -> LanguageModelSpec:
    for switch, meaning in _BEYOND.items():
        if config.get(switch):
            raise UsageError(f"{where}: {switch} is {config[switch]!r}: regard's GPT has no {meaning}")
    values = gpt_model(layers=1, width=1, heads=1, positions=1, dropout=0.0).to_dict()
    for row in SAID:
        value = config.get(row.config, row.usual)
        if row.config == "n_inner" and value is None:
            value = 4 * _count(config, "n_embd", 768, where)
        if row.words is not None:
            value = _our_word(row, value, where)
        for place in row.places:
            _put(values, place, value)
    return LanguageModelSpec.from_dict(values, where=str(where))


def _count(config: Mapping[str, Any], name: str, usual: int, where: Path) -> int:
    value = config.get(name, usual)
    if not isinstance(value, int):
        raise DataError(f"expected a number, got {value!r}", file=where, field=name)
    return value


def _our_word(row: Said, value: Any, where: Path) -> str:
    words = row.words or {}
    found = next((ours for theirs, ours in words.items() if theirs == value), None)
    if found is None:
        raise UsageError(f"{where}: {row.config} is {value!r}; regard knows {', '.join(map(str, words))}")
    return found


def _their_word(row: Said, value: Any) -> Any:
    if row.words is None:
        return value
    return next((theirs for theirs, ours in row.words.items() if ours == value), None)


def _put(values: Any, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for key in way:
        values = values[int(key)] if isinstance(values, list) else values[key]
    values[last] = value


def _both(ours: str, theirs: str, transposed: bool = False) -> list[Renamed]:
    return [
        Renamed(f"{ours}.weight", f"{theirs}.weight", transposed),
        Renamed(f"{ours}.bias", f"{theirs}.bias"),
    ]
