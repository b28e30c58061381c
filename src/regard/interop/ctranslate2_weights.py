"""CTranslate2's specs of encoders and decoders, filled with our weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from ctranslate2 import specs as theirs
from torch import Tensor

from regard.interop.ctranslate2_words import Described, InexpressibleError, word_for
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.positions import Sinusoidal

TheirSpec = Any
"""CTranslate2 has no types."""
POSITIONS = 2048
"""As many as are written down where there is no last one."""

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Named:
    """The weights below one name."""

    weights: Weights
    prefix: str

    def below(self, name: str) -> "Named":
        return Named(self.weights, f"{self.prefix}.{name}")

    def get(self, name: str) -> Tensor | None:
        found = self.weights.get(f"{self.prefix}.{name}")
        return None if found is None else found.detach().cpu().float().contiguous()

    def __getitem__(self, name: str) -> Tensor:
        found = self.get(name)
        assert found is not None, f"{self.prefix}.{name} is a weight"
        return found


def their_encoder(spec: EncoderSpec, said: Described, weights: Named, with_segments: bool) -> TheirSpec:
    """All that reads, as it declares it; where nobody will tell it segments, a table of them is refused."""
    if spec.sees != "all":
        raise InexpressibleError(f"model.encoder.sees is {spec.sees!r}: its encoders see all")
    segments, embedding, where = spec.embedding.segments, spec.embedding, "model.encoder.embedding"
    tables = {"num_source_embeddings": 2, "embeddings_merge": theirs.EmbeddingsMerge.ADD} if segments else {}
    made = theirs.TransformerEncoderSpec(said.layers, said.heads, **tables, **said.options)
    if segments and with_segments:
        # It adds tables before it scales, we after.
        table = weights["embedding.segments.weight"]
        made.embeddings[1].weight = table / embedding.width**0.5 if embedding.scale else table
        embedding = embedding.model_copy(update={"segments": 0})
    _embedding(made, made.embeddings[0], embedding, weights.below("embedding"), where)
    _fill_stack(made, said, weights.below("stack"))
    return made


def their_decoder(spec: DecoderSpec, said: Described, weights: Named, with_memory: bool) -> TheirSpec:
    """All that writes, as it declares it."""
    if spec.head.rephrasing is not None:
        raise InexpressibleError(
            "model.decoder.head.rephrasing: it goes from the last layer to words at once"
        )
    made = theirs.TransformerDecoderSpec(
        said.layers, said.heads, with_encoder_attention=with_memory, **said.options
    )
    _embedding(made, made.embeddings, spec.embedding, weights.below("embedding"), "model.decoder.embedding")
    _fill_stack(made, said, weights.below("stack"))
    _linear(made.projection, weights.below("head.words"))
    return made


def _embedding(stack: TheirSpec, table: TheirSpec, spec: EmbeddingSpec, weights: Named, where: str) -> None:
    for field, usual in (("table", None), ("segments", 0), ("spelling", None), ("letters", None)):
        if (value := getattr(spec, field)) != usual:
            raise InexpressibleError(f"{where}.{field} is {value!r}: it has only tokens and positions")
    table.weight = weights["tokens.weight"]
    stack.scale_embeddings = spec.scale
    positions = word_for(_ADDED, spec.positions, f"{where}.positions")(spec, weights)
    felt = not hasattr(stack, "position_encodings")
    rotary = hasattr(stack.layer[0].self_attention, "rotary_dim")
    if rotary and not felt:
        del stack.position_encodings  # it takes none in an encoder that turns them into queries and keys
    elif not felt:
        stack.position_encodings.encodings = positions if positions is not None else _nowhere(spec.width)
    if positions is not None and (felt or rotary):
        raise InexpressibleError(
            f"{where}.positions: it has positions in the input or in attention, not both"
        )
    if spec.norm is not None:
        _norm(stack.layernorm_embedding, weights.below("norm"))


def _nowhere(width: int) -> Tensor:
    """It would add sinusoids of its own where nothing is said."""
    return torch.zeros(POSITIONS, width)


def _added_none(spec: EmbeddingSpec, weights: Named) -> Tensor | None:
    return None


def _added_sinusoidal(spec: EmbeddingSpec, weights: Named) -> Tensor | None:
    made: Tensor = Sinusoidal(spec.width)(torch.arange(POSITIONS)[None])[0]
    return made


def _added_learned(spec: EmbeddingSpec, weights: Named) -> Tensor | None:
    return weights["positions.table.weight"]


_ADDED: dict[str, Callable[[EmbeddingSpec, Named], Tensor | None]] = {
    "none": _added_none,
    "sinusoidal": _added_sinusoidal,
    "learned": _added_learned,
}


def _fill_stack(stack: TheirSpec, said: Described, weights: Named) -> None:
    for number, layer in enumerate(stack.layer):
        ours = weights.below(f"layers.{number}")
        places = {"attention": layer.self_attention, "pointwise": layer.ffn}
        if "memory_attention" in said.mixers:
            places["memory_attention"] = layer.attention
        for index, kind in enumerate(said.mixers):
            _FILL[kind](places[kind], ours.below(f"mixers.{index}"), said)
            _norm(places[kind].layer_norm, ours.below(f"joins.{index}.norm"))
    if hasattr(stack, "layer_norm"):
        _norm(stack.layer_norm, weights.below("final_norm"))
    _refuse_biases_of_layers(stack)


def _refuse_biases_of_layers(stack: TheirSpec) -> None:
    """It looks buckets up once, in the first layer."""
    tables = [getattr(layer.self_attention, "relative_attention_bias", None) for layer in stack.layer]
    first = tables[0]
    if first is not None and any(other is None or not torch.equal(first, other) for other in tables):
        raise InexpressibleError("layers have buckets of their own: it has one table for all")


def _fill_attention(place: TheirSpec, weights: Named, said: Described) -> None:
    _linear(place.linear[0], weights.below("project"))
    _linear(place.linear[1], weights.below("out"))
    _fill_scale(place, said)
    positions = weights.below("positions")
    if hasattr(place, "relative_position_keys"):
        table = positions["table"]
        if said.scale is not None:  # it scales what distances say as it scales scores, we by 1/√d in any case
            table = table * (table.shape[1] ** -0.5 / said.scale)
        place.relative_position_keys, place.relative_position_values = table, torch.zeros_like(table)
    if hasattr(place, "relative_attention_bias"):
        place.relative_attention_bias = positions["table.weight"]
        place.relative_attention_max_distance = np.int32(said.farthest)


def _fill_memory_attention(place: TheirSpec, weights: Named, said: Described) -> None:
    _linear(place.linear[0], weights.below("query"))
    _linear(place.linear[1], weights.below("project"))
    _linear(place.linear[2], weights.below("out"))
    _fill_scale(place, said)


def _fill_scale(place: TheirSpec, said: Described) -> None:
    if said.scale is not None:
        place.queries_scale = float(said.scale)


def _fill_network(place: TheirSpec, weights: Named, said: Described) -> None:
    network = weights.below("network")
    _linear(place.linear_0, network.below("widen"))
    _linear(place.linear_1, network.below("narrow"))
    if said.options["ffn_glu"]:
        _linear(place.linear_0_noact, network.below("gate"))


_FILL: dict[str, Callable[[TheirSpec, Named, Described], None]] = {
    "attention": _fill_attention,
    "memory_attention": _fill_memory_attention,
    "pointwise": _fill_network,
}


def _linear(place: TheirSpec, weights: Named) -> None:
    place.weight = weights["weight"]
    if (bias := weights.get("bias")) is not None:
        place.bias = bias


def _norm(place: TheirSpec, weights: Named) -> None:
    place.gamma = weights["weight"]
    if hasattr(place, "beta"):
        place.beta = weights["bias"]
