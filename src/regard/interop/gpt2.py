"""GPT-2 (Radford et al. 2019): its config, and the names of its weights."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from regard.core.errors import DataError, UsageError
from regard.data.text import TextSpec
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.interop.family import Family, Offered, Vocabulary, Wanted
from regard.interop.hugging_face_files import CONFIG, GENERATION, to_json
from regard.interop.hugging_face_tokenizers import read_tokenizer, write_tokenizer
from regard.interop.renaming import Renamed, renamed_layer
from regard.interop.saying import (
    ACTIVATIONS,
    Said,
    differences,
    to_config,
    to_spec,
    whole_number,
)
from regard.models.language_model import LanguageModelSpec
from regard.recipes.gpt import gpt_model
from regard.recipes.running_text import running_text
from regard.recipes.system import SystemSpec
from regard.training.optimisation import AdamW

_BLOCK = "decoder.stack.blocks.0"
SAID = (
    Said("n_embd", 768, ("decoder.embedding.width",)),
    Said("n_positions", 1024, ("decoder.embedding.positions.longest",)),
    Said("embd_pdrop", 0.1, ("decoder.embedding.dropout",)),
    Said("n_layer", 12, (f"{_BLOCK}.repeat",)),
    Said("n_head", 12, (f"{_BLOCK}.mixers.0.heads",)),
    Said("attn_pdrop", 0.1, (f"{_BLOCK}.mixers.0.dropout",)),
    Said("scale_attn_weights", True, (f"{_BLOCK}.mixers.0.score.kind",), {True: "scaled", False: "dot"}),
    Said("n_inner", None, (f"{_BLOCK}.mixers.1.hidden",)),
    Said("activation_function", "gelu_new", (f"{_BLOCK}.mixers.1.activation",), ACTIVATIONS),
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
    kinds = ("language_model",)
    prefix = "transformer."

    def vocabulary(self, offered: Offered) -> Vocabulary:
        return read_tokenizer(offered.folder, offered.config)

    def system(self, offered: Offered, vocabulary: Vocabulary) -> SystemSpec:
        tokenizer, opened, _ = vocabulary
        model = _model(offered.config, offered.folder / CONFIG)
        positions = int(model.paths()["decoder.embedding.positions.longest"])  # type: ignore[arg-type]
        data = TextSpec(
            tokenizer=TokenizerSpec(unit="imported", size=tokenizer.size), window=positions, rows=8
        )
        # A model that has learned already goes on at a low rate.
        optimiser = AdamW(weight_decay=0.1, betas=(0.9, 0.95))
        system = running_text(data, model, optimiser, peak=1e-4, warmup=100)
        return system.override([f"task.opened={str(opened).lower()}"])

    def config(self, system: SystemSpec, tokenizer: Tokenizer) -> dict[str, Any]:
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "vocab_size": tokenizer.size,
            **to_config(SAID, system.model.paths()),
            # Every document begins after an end.
            "bos_token_id": tokenizer.end,
            "eos_token_id": tokenizer.end,
            "pad_token_id": tokenizer.pad,
            "dtype": "float32",
        }

    def differences(self, system: SystemSpec, config: Mapping[str, Any]) -> list[str]:
        # Read back, it must be the same model.
        found = differences(_model(config, Path("config.json")), system.model, self.title)
        return found + [
            f"{path} is {value!r} (GPT-2: {usual!r})"
            for path, usual in (("data.backwards", False), ("task.backwards", False))
            if (value := system.paths().get(path, usual)) != usual
        ]

    def table(self, system: SystemSpec) -> list[Renamed]:
        leaves = system.model.paths()
        rows = [
            Renamed("decoder.embedding.tokens.weight", "transformer.wte.weight"),
            Renamed("decoder.embedding.positions.table.weight", "transformer.wpe.weight"),
        ]
        for layer in range(int(leaves[f"{_BLOCK}.repeat"])):  # type: ignore[arg-type]
            ours, theirs = f"decoder.stack.layers.{layer}", f"transformer.h.{layer}"
            rows += [
                *renamed_layer(f"{ours}.joins.0.norm", f"{theirs}.ln_1"),
                *renamed_layer(f"{ours}.mixers.0.project", f"{theirs}.attn.c_attn", transposed=True),
                *renamed_layer(f"{ours}.mixers.0.out", f"{theirs}.attn.c_proj", transposed=True),
                *renamed_layer(f"{ours}.joins.1.norm", f"{theirs}.ln_2"),
                *renamed_layer(f"{ours}.mixers.1.network.widen", f"{theirs}.mlp.c_fc", transposed=True),
                *renamed_layer(f"{ours}.mixers.1.network.narrow", f"{theirs}.mlp.c_proj", transposed=True),
            ]
        rows += renamed_layer("decoder.stack.final_norm", "transformer.ln_f")
        if not leaves["tied"]:
            rows.append(Renamed("decoder.head.words.weight", "lm_head.weight"))
        return rows

    def wanted(self, offered: Offered, system: SystemSpec) -> Wanted:
        """A model saved without its head has names without "transformer."; older ones keep their masks."""
        found = {
            name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}": tensor
            for name, tensor in offered.stored.items()
            if not _MASK.search(name)
        }
        words, head = found.get("transformer.wte.weight"), found.get("lm_head.weight")
        if system.model.paths()["tied"] and words is not None and head is not None:
            if not torch.equal(words, head):
                raise DataError(
                    "lm_head.weight differs from transformer.wte.weight, but config.json says they are one "
                    "(tie_word_embeddings)",
                    file=offered.folder,
                )
            del found["lm_head.weight"]
        return Wanted(found, [])

    def files(self, system: SystemSpec, tokenizer: Tokenizer, config: Mapping[str, Any]) -> dict[str, bytes]:
        opened = bool(system.task.to_dict().get("opened", True))
        marks = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
        return {GENERATION: to_json(marks), **write_tokenizer(tokenizer, opened, config.get("n_positions"))}


_MASK = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)$")


def _model(config: Mapping[str, Any], where: Path) -> LanguageModelSpec:
    for switch, meaning in _BEYOND.items():
        if config.get(switch):
            raise UsageError(f"{where}: {switch} is {config[switch]!r}: regard's GPT has no {meaning}")
    if config.get("n_inner") is None:
        config = {**config, "n_inner": 4 * whole_number(config, "n_embd", 768, where)}
    values = gpt_model(layers=1, width=1, heads=1, positions=1, dropout=0.0).to_dict()
    to_spec(SAID, config, values, where)
    return LanguageModelSpec.from_dict(values, where=str(where))
