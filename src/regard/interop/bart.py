"""BART (Lewis et al. 2020): post-norm, positions in the input."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch

from regard.core.errors import UsageError
from regard.interop.encoder_decoder import EncoderDecoder, asked, put, their_word, without_copies, word
from regard.interop.family import Offered, Wanted
from regard.interop.renaming import Change, Renamed
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.parts.norms import LayerNormSpec
from regard.parts.positions import LearnedSpec, NoPairPositionSpec, PositionSpec
from regard.recipes.system import SystemSpec
from regard.recipes.transformer import transformer_model
from regard.stacks.join import PostNormSpec

_ACTIVATIONS = {
    "gelu": "gelu",
    "relu": "relu",
    "swish": "silu",
    "silu": "silu",
    "gelu_new": "gelu_tanh",
    "tanh": "tanh",
}
_SIDES = (("encoder", 1), ("decoder", 2))
"""Each with the place of the network in its layers."""
_OFFSET = 2
"""Rows of BART's table of positions that nothing stands at."""


class Bart(EncoderDecoder):
    title, architecture, model_type = "BART", "BartForConditionalGeneration", "bart"
    prefix = "model.encoder.layernorm_embedding."
    has_bias = True
    normed: ClassVar[bool] = True
    """Embeddings go through a norm."""

    def positions(self, config: Mapping[str, Any], where: Path) -> PositionSpec:
        return LearnedSpec(longest=asked(config, "max_position_embeddings", 1024, int, where))

    def model(self, config: Mapping[str, Any], biased: bool, where: Path) -> SequenceToSequenceSpec:
        for name, wanted in (("tie_word_embeddings", True), ("share_encoder_decoder_embeddings", True)):
            if config.get(name, wanted) is not wanted:
                raise UsageError(f"{where}: {name} is {config[name]!r}; regard reads models with one table")
        get = partial(asked, config, where=where)
        dropout = get("dropout", 0.1, float)
        values = transformer_model(
            layers=1,
            width=get("d_model", 1024, int),
            hidden=1,
            heads=1,
            dropout=dropout,
            join=PostNormSpec(dropout=dropout),
            final_norm=None,
            positions=self.positions(config, where),
            distances=NoPairPositionSpec(),
        ).to_dict()
        scale = get("scale_embedding", False, bool)
        activation = word(_ACTIVATIONS, get("activation_function", "gelu", str), "activation_function", where)
        for side, network in _SIDES:
            block = f"{side}.stack.blocks.0"
            put(values, f"{block}.repeat", get(f"{side}_layers", 12, int))
            put(values, f"{block}.mixers.{network}.hidden", get(f"{side}_ffn_dim", 4096, int))
            put(values, f"{block}.mixers.{network}.activation", activation)
            put(values, f"{block}.mixers.{network}.dropout", get("activation_dropout", 0.0, float))
            for place in range(network):
                put(values, f"{block}.mixers.{place}.heads", get(f"{side}_attention_heads", 16, int))
                put(values, f"{block}.mixers.{place}.dropout", get("attention_dropout", 0.0, float))
            put(values, f"{side}.embedding.scale", scale)
            put(values, f"{side}.embedding.norm", LayerNormSpec().to_dict() if self.normed else None)
        put(values, "decoder.head.bias", biased)
        return SequenceToSequenceSpec.from_dict(values, where=str(where))

    def described(self, model: dict[str, Any]) -> dict[str, Any]:
        layer = "encoder.stack.blocks.0.mixers"
        sides = {
            f"{side}_{name}": model.get(f"{side}.stack.blocks.0.{path}")
            for side, network in _SIDES
            for name, path in (
                ("layers", "repeat"),
                ("ffn_dim", f"mixers.{network}.hidden"),
                ("attention_heads", "mixers.0.heads"),
            )
        }
        said = {
            **sides,
            "d_model": model.get("encoder.embedding.width"),
            "max_position_embeddings": model.get("encoder.embedding.positions.longest", _LONGEST),
            "scale_embedding": model.get("encoder.embedding.scale"),
            "activation_function": their_word(_ACTIVATIONS, model.get(f"{layer}.1.activation")),
            "dropout": model.get("encoder.embedding.dropout"),
            "attention_dropout": model.get(f"{layer}.0.dropout"),
            "activation_dropout": model.get(f"{layer}.1.dropout"),
        }
        known = {name: value for name, value in said.items() if value is not None}
        return {"model_type": self.model_type, **known, "tie_word_embeddings": True}

    def table(self, system: SystemSpec) -> list[Renamed]:
        leaves, rows = system.model.paths(), [self.embedding()]
        for side, network in _SIDES:
            if self.normed:
                rows += self.norm(f"{side}.embedding.norm", f"model.{side}.layernorm_embedding")
            rows += self.position_rows(side)
            for layer in range(int(str(leaves[f"{side}.stack.blocks.0.repeat"]))):
                ours, theirs = f"{side}.stack.layers.{layer}", f"model.{side}.layers.{layer}"
                rows += self.attention(f"{ours}.mixers.0", f"{theirs}.self_attn")
                rows += self.norm(f"{ours}.joins.0.norm", f"{theirs}.self_attn_layer_norm")
                if network == 2:
                    rows += self.memory(f"{ours}.mixers.1", f"{theirs}.encoder_attn")
                    rows += self.norm(f"{ours}.joins.1.norm", f"{theirs}.encoder_attn_layer_norm")
                rows += self.reading(f"{ours}.mixers.{network}.network.widen", f"{theirs}.fc1")
                rows += self.writing(f"{ours}.mixers.{network}.network.narrow", f"{theirs}.fc2")
                rows += self.norm(f"{ours}.joins.{network}.norm", f"{theirs}.final_layer_norm")
        if leaves["decoder.head.bias"]:
            flat = Change(lambda bias: bias[0], lambda bias: bias[None])
            rows.append(Renamed("decoder.head.words.bias", "final_logits_bias", change=flat))
        return rows

    def wanted(self, offered: Offered, system: SystemSpec) -> Wanted:
        """A model saved without its head has names without "model."."""
        found = {
            name if name.startswith(("model.", "lm_head.", "final_logits_bias")) else f"model.{name}": tensor
            for name, tensor in offered.stored.items()
            if not self.made_anew.search(name)
        }
        copies = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
        found = without_copies(found, "model.shared.weight", copies, offered.folder)
        if "final_logits_bias" not in found and "model.shared.weight" in found:
            found["final_logits_bias"] = torch.zeros(1, len(found["model.shared.weight"]))
        return Wanted(found, [])

    made_anew: ClassVar[re.Pattern[str]] = re.compile(r"\.version$")
    """Weights that say nothing."""

    def position_rows(self, side: str) -> list[Renamed]:
        empty = Change(
            lambda table: table[_OFFSET:],
            lambda table: torch.cat((table.new_zeros(_OFFSET, table.shape[1]), table)),
        )
        ours, theirs = f"{side}.embedding.positions.table.weight", f"model.{side}.embed_positions.weight"
        return [Renamed(ours, theirs, change=empty)]

    # Rows of the table, by what a weight does with the coordinates of the model

    def along(self, axis: int) -> Change | None:
        """How the coordinates along an axis are ordered there; None: as here."""
        return None

    def embedding(self) -> Renamed:
        return Renamed("encoder.embedding.tokens.weight", "model.shared.weight", change=self.along(1))

    def norm(self, ours: str, theirs: str) -> list[Renamed]:
        return [
            Renamed(f"{ours}.{name}", f"{theirs}.{name}", change=self.along(0)) for name in ("weight", "bias")
        ]

    def reading(self, ours: str, *theirs: str) -> list[Renamed]:
        weights, biases = (tuple(f"{one}.{name}" for one in theirs) for name in ("weight", "bias"))
        return [
            Renamed(f"{ours}.weight", weights, change=self.along(1)),
            Renamed(f"{ours}.bias", biases),
        ]

    def writing(self, ours: str, theirs: str) -> list[Renamed]:
        return [
            Renamed(f"{ours}.{name}", f"{theirs}.{name}", change=self.along(0)) for name in ("weight", "bias")
        ]

    def attention(self, ours: str, theirs: str) -> list[Renamed]:
        parts = (f"{theirs}.{name}_proj" for name in "qkv")
        return [
            *self.reading(f"{ours}.project", *parts),
            *self.writing(f"{ours}.out", f"{theirs}.out_proj"),
        ]

    def memory(self, ours: str, theirs: str) -> list[Renamed]:
        return [
            *self.reading(f"{ours}.query", f"{theirs}.q_proj"),
            *self.reading(f"{ours}.project", f"{theirs}.k_proj", f"{theirs}.v_proj"),
            *self.writing(f"{ours}.out", f"{theirs}.out_proj"),
        ]


_LONGEST = 1024
