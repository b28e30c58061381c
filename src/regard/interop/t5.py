"""T5 (Raffel et al. 2020): pre-norm by root mean squares, buckets of distances, no biases, no scaling."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from regard.core.errors import UsageError
from regard.interop.encoder_decoder import EncoderDecoder, asked, put, their_word, without_copies, word
from regard.interop.family import Offered, Wanted
from regard.interop.renaming import Change, Renamed
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.parts.norms import RootMeanSquareSpec
from regard.parts.positions import BucketsSpec, NoPositionSpec
from regard.recipes.system import SystemSpec
from regard.recipes.transformer import transformer_model
from regard.stacks.join import PreNormSpec

_NETWORKS = {"relu": "relu", "gated-gelu": "gelu_tanh", "gated-silu": "silu", "gelu": "gelu"}
_SIDES = (("encoder", 1, "num_layers"), ("decoder", 2, "num_decoder_layers"))


class T5(EncoderDecoder):
    title, architecture = "T5", "T5ForConditionalGeneration"
    prefix = "encoder.block."
    has_bias = False

    def model(self, config: Mapping[str, Any], biased: bool, where: Path) -> SequenceToSequenceSpec:
        get = partial(asked, config, where=where)
        width, heads, dropout = (
            get("d_model", 512, int),
            get("num_heads", 8, int),
            get("dropout_rate", 0.1, float),
        )
        if get("d_kv", 64, int) * heads != width:
            raise UsageError(
                f"{where}: {heads} heads of {config.get('d_kv', 64)} (d_kv) are not {width} wide (d_model): "
                "regard splits the width of a model into its heads"
            )
        norm = RootMeanSquareSpec(epsilon=get("layer_norm_epsilon", 1e-6, float))
        buckets = BucketsSpec(
            buckets=get("relative_attention_num_buckets", 32, int),
            farthest=get("relative_attention_max_distance", 128, int),
        )
        values = transformer_model(
            layers=1,
            width=width,
            hidden=1,
            heads=heads,
            dropout=dropout,
            join=PreNormSpec(dropout=dropout, norm=norm),
            final_norm=norm,
            positions=NoPositionSpec(),
            distances=buckets,
        ).to_dict()
        said = get("feed_forward_proj", "relu", str)
        for side, network, layers in _SIDES:
            block = f"{side}.stack.blocks.0"
            put(values, f"{block}.repeat", get(layers, get("num_layers", 6, int), int))
            put(values, f"{block}.mixers.{network}.hidden", get("d_ff", 2048, int))
            put(
                values,
                f"{block}.mixers.{network}.activation",
                word(_NETWORKS, said, "feed_forward_proj", where),
            )
            put(values, f"{block}.mixers.{network}.gated", said.startswith("gated-"))
            put(values, f"{block}.mixers.{network}.dropout", dropout)
            put(values, f"{block}.mixers.{network}.bias", False)
            for place in range(network):
                put(values, f"{block}.mixers.{place}.score", {"kind": "dot"})
                put(values, f"{block}.mixers.{place}.dropout", dropout)
                put(values, f"{block}.mixers.{place}.bias", False)
            put(values, f"{side}.embedding.scale", False)
        put(values, "decoder.stack.blocks.0.mixers.0.positions.two_sided", False)
        return SequenceToSequenceSpec.from_dict(values, where=str(where))

    def described(self, model: dict[str, Any]) -> dict[str, Any]:
        block = "encoder.stack.blocks.0"
        width, heads = model.get("encoder.embedding.width"), model.get(f"{block}.mixers.0.heads")
        distances = f"{block}.mixers.0.positions"
        activation = model.get(f"{block}.mixers.1.activation")
        gated = {name: ours for name, ours in _NETWORKS.items() if name.startswith("gated-")}
        plain = {name: ours for name, ours in _NETWORKS.items() if name not in gated}
        said = {
            "d_model": width,
            "num_heads": heads,
            "d_kv": width // heads if width and heads else None,
            "d_ff": model.get(f"{block}.mixers.1.hidden"),
            "num_layers": model.get(f"{block}.repeat"),
            "num_decoder_layers": model.get("decoder.stack.blocks.0.repeat"),
            "relative_attention_num_buckets": model.get(f"{distances}.buckets"),
            "relative_attention_max_distance": model.get(f"{distances}.farthest"),
            "dropout_rate": model.get("encoder.embedding.dropout"),
            "layer_norm_epsilon": model.get(f"{block}.join.norm.epsilon"),
            "feed_forward_proj": their_word(
                gated if model.get(f"{block}.mixers.1.gated") else plain, activation
            ),
        }
        known = {name: value for name, value in said.items() if value is not None}
        # Without the word it would multiply what it reads off by 1/√d; ours has that in its last norm.
        return {"model_type": "t5", **known, "tie_word_embeddings": True}

    def table(self, system: SystemSpec) -> list[Renamed]:
        leaves = system.model.paths()
        width = int(str(leaves["encoder.embedding.width"]))
        rows = [Renamed("encoder.embedding.tokens.weight", "shared.weight")]
        for side, network, _ in _SIDES:
            for layer in range(int(str(leaves[f"{side}.stack.blocks.0.repeat"]))):
                ours, theirs = f"{side}.stack.layers.{layer}", f"{side}.block.{layer}.layer"
                rows += _attention(f"{ours}.mixers.0", f"{theirs}.0.SelfAttention")
                # Theirs is in the first layer only; all others look it up there.
                shared = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
                copied = Change(lambda table: table.clone(), lambda table: table)
                rows.append(Renamed(f"{ours}.mixers.0.positions.table.weight", shared, change=copied))
                if network == 2:
                    rows += _memory(f"{ours}.mixers.1", f"{theirs}.1.EncDecAttention")
                rows += _network(
                    f"{ours}.mixers.{network}.network",
                    f"{theirs}.{network}.DenseReluDense",
                    bool(leaves[f"{side}.stack.blocks.0.mixers.{network}.gated"]),
                )
                rows += [
                    Renamed(f"{ours}.joins.{place}.norm.weight", f"{theirs}.{place}.layer_norm.weight")
                    for place in range(network + 1)
                ]
        rows.append(Renamed("encoder.stack.final_norm.weight", "encoder.final_layer_norm.weight"))
        # What is read off is multiplied by 1/√d there: here the last norm does it.
        scaled = Change(lambda gain: gain * width**-0.5, lambda gain: gain * width**0.5)
        rows.append(
            Renamed("decoder.stack.final_norm.weight", "decoder.final_layer_norm.weight", change=scaled)
        )
        return rows

    def wanted(self, offered: Offered, system: SystemSpec) -> Wanted:
        copies = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
        return Wanted(without_copies(offered.stored, "shared.weight", copies, offered.folder), [])


def _attention(ours: str, theirs: str) -> list[Renamed]:
    parts = tuple(f"{theirs}.{name}.weight" for name in "qkv")
    return [Renamed(f"{ours}.project.weight", parts), Renamed(f"{ours}.out.weight", f"{theirs}.o.weight")]


def _memory(ours: str, theirs: str) -> list[Renamed]:
    return [
        Renamed(f"{ours}.query.weight", f"{theirs}.q.weight"),
        Renamed(f"{ours}.project.weight", (f"{theirs}.k.weight", f"{theirs}.v.weight")),
        Renamed(f"{ours}.out.weight", f"{theirs}.o.weight"),
    ]


def _network(ours: str, theirs: str, gated: bool) -> list[Renamed]:
    if not gated:
        names = {"widen": "wi", "narrow": "wo"}
    else:
        names = {"widen": "wi_0", "gate": "wi_1", "narrow": "wo"}
    return [Renamed(f"{ours}.{own}.weight", f"{theirs}.{other}.weight") for own, other in names.items()]
