"""Our models in the terms of CTranslate2: its own specs, filled from ours and from our weights.

Whatever it has no word for is refused by name of the field, so who asks learns why another engine answers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from ctranslate2 import specs as theirs
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.positions import Sinusoidal
from regard.stacks.stack import StackSpec

TheirSpec = Any
"""CTranslate2 has no types."""
POSITIONS = 2048
"""As many as are written down where there is no last one."""

Weights = Mapping[str, Tensor]


class InexpressibleError(UsageError):
    """This model says something that the other program cannot."""


def their_model(model: ModelSpec, lexicon: Lexicon, weights: Weights) -> TheirSpec:
    """The whole model as CTranslate2 declares it; tied weights are there under all their names."""
    convert = _MODELS.get(model.kind() or "")
    if convert is None:
        raise InexpressibleError(f"model.kind is {model.kind()!r}: it knows {', '.join(_MODELS)}")
    return convert(model, lexicon, weights)


def their_reader(model: ModelSpec, lexicon: Lexicon, weights: Weights) -> TheirSpec:
    """What of a model reads, whatever stands on it."""
    where, spec = f"model.{model.reads_as}", model.reader()
    if spec.mix is not None:
        raise InexpressibleError(f"{where}.mix: it gives the last layer, not a sum of all")
    said = _described(spec, ("attention", "pointwise"), where, both_ways=True)
    made = theirs.TransformerEncoderModelSpec(_encoder(spec, said, Named(weights, model.reads_as), True))
    tokenizer = lexicon["text"]
    made.register_vocabulary(names_of(tokenizer))
    _configure(made.config, tokenizer, said.epsilon)
    return made


# ---------------------------------------------------------------- whole models


def _translator(model: Any, lexicon: Lexicon, weights: Weights) -> TheirSpec:
    encoder = _described(model.encoder, ("attention", "pointwise"), "model.encoder", both_ways=True)
    looking = ("attention", "memory_attention", "pointwise")
    decoder = _described(model.decoder, looking, "model.decoder", both_ways=False)
    if encoder.epsilon != decoder.epsilon:
        raise InexpressibleError(
            f"norms differ: epsilon is {encoder.epsilon} and {decoder.epsilon}; it has one for all"
        )
    made = theirs.TransformerSpec(
        _encoder(model.encoder, encoder, Named(weights, "encoder"), with_segments=False),
        _decoder(model.decoder, decoder, Named(weights, "decoder"), with_memory=True),
    )
    source, target = lexicon["source"], lexicon["target"]
    made.register_source_vocabulary(names_of(source))
    made.register_target_vocabulary(names_of(target))
    _configure(made.config, target, encoder.epsilon)
    made.config.decoder_start_token = names_of(target)[target.begin]
    # Sources come with their end; whoever uses the folder alone adds it the same way.
    return made


def _language_model(model: Any, lexicon: Lexicon, weights: Weights) -> TheirSpec:
    decoder = _described(model.decoder, ("attention", "pointwise"), "model.decoder", both_ways=False)
    if "relative_attention_bias" in decoder.options:
        raise InexpressibleError(
            "model.decoder: it counts buckets otherwise when it reads several tokens of a prompt at once"
        )
    made = theirs.TransformerDecoderModelSpec(
        _decoder(model.decoder, decoder, Named(weights, "decoder"), with_memory=False)
    )
    tokenizer = lexicon["text"]
    made.register_vocabulary(names_of(tokenizer))
    _configure(made.config, tokenizer, decoder.epsilon)
    return made


_MODELS: dict[str, Callable[[Any, Lexicon, Weights], TheirSpec]] = {
    "sequence_to_sequence": _translator,
    "language_model": _language_model,
}


def _configure(config: Any, tokenizer: Tokenizer, epsilon: float) -> None:
    names = names_of(tokenizer)
    config.unk_token, config.bos_token = names[tokenizer.unknown], names[tokenizer.begin]
    config.eos_token, config.layer_norm_epsilon = names[tokenizer.end], epsilon


def positions_of(embedding: EmbeddingSpec) -> int:
    """How many are written down for it."""
    return int(getattr(embedding.positions, "longest", POSITIONS))


def names_of(tokenizer: Tokenizer) -> list[str]:
    """What every token is called, spare rows of an imported model included."""
    known = {number: name for name, number in tokenizer.vocabulary().items()}
    return [known.get(number, f"<spare {number}>") for number in range(tokenizer.size)]


# ---------------------------------------------------------------- what is said about a stack


class Described(NamedTuple):
    """A stack of equal layers, in CTranslate2's words; anything else was refused."""

    layers: int
    heads: int
    mixers: tuple[str, ...]
    options: dict[str, Any]
    """Of its encoder and decoder specs alike."""
    epsilon: float
    scale: float | None
    """Of queries; None: its own, 1/√d."""
    farthest: int
    """Distance from which buckets tell no more apart; 0 where there are none."""


_SCORES: dict[str, float | None] = {"scaled": None, "dot": 1.0}
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH", "tanh": "Tanh"}
_JOINS = {"pre_norm": True, "post_norm": False}
_NORMS = {"layer": False, "rms": True}


def _distances_none(_: Any) -> dict[str, Any]:
    return {}


def _distances_rotary(positions: Any) -> dict[str, Any]:
    return {"rotary_dim": 0, "rotary_interleave": True, "rotary_base": positions.base}


def _distances_relative(_: Any) -> dict[str, Any]:
    return {"relative_position": True}


def _distances_buckets(_: Any) -> dict[str, Any]:
    return {"relative_attention_bias": True}


_DISTANCES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "none": _distances_none,
    "rotary": _distances_rotary,
    "relative": _distances_relative,
    "buckets": _distances_buckets,
}


def _described(side: Any, mixers: tuple[str, ...], where: str, both_ways: bool) -> Described:
    stack: StackSpec = side.stack
    layers = [_layer(block, mixers, f"{where}.stack.blocks.{i}") for i, block in enumerate(stack.blocks)]
    first = layers[0]
    for number, other in enumerate(layers[1:], start=1):
        if other != first:
            raise InexpressibleError(
                f"{where}.stack.blocks.{number} is not like the first: layers must be equal"
            )
    options, epsilon = dict(first.options), first.epsilon
    norm = stack.final_norm
    if norm is None:
        options["no_final_norm"] = True
    elif not options["pre_norm"]:
        raise InexpressibleError(f"{where}.stack.final_norm: it has none after post-norm layers")
    norms = {f"{where}.stack.final_norm": norm, f"{where}.embedding.norm": side.embedding.norm}
    for path, one in norms.items():
        if one is not None and (_NORMS.get(one.kind()), one.epsilon) != (options["rms_norm"], epsilon):
            raise InexpressibleError(f"{path} is not like the norms of the layers; it has one kind for all")
    distances = stack.blocks[0].mixers[0].to_dict()["positions"]
    if cast(dict[str, Any], distances).get("two_sided", both_ways) != both_ways:
        raise InexpressibleError(
            f"{where}: buckets tell before from after in its encoders, never in decoders"
        )
    options["layernorm_embedding"] = side.embedding.norm is not None
    return first._replace(layers=sum(block.repeat for block in stack.blocks), options=options)


def _layer(block: Any, mixers: tuple[str, ...], where: str) -> Described:
    found = tuple(mixer.kind() for mixer in block.mixers)
    if found != mixers:
        raise InexpressibleError(f"{where}.mixers are {', '.join(found)}; it knows {', '.join(mixers)}")
    attentions, network = block.mixers[:-1], block.mixers[-1]
    own, join = attentions[0], block.join
    for number, one in enumerate(attentions):
        path = f"{where}.mixers.{number}"
        _word(_SCORES, one.score, f"{path}.score")
        if (one.heads, one.score) != (own.heads, own.score):
            raise InexpressibleError(
                f"{path} has other heads or scores than the first; it has one number for all"
            )
    if own.radius is not None:
        raise InexpressibleError(f"{where}.mixers.0.radius is {own.radius}: it looks at all")
    options = {
        "pre_norm": _word(_JOINS, join, f"{where}.join"),
        "rms_norm": _word(_NORMS, join.norm, f"{where}.join.norm"),
        "activation": theirs.Activation[_ACTIVATIONS[network.activation]],
        "ffn_glu": network.gated,
        **_word(_DISTANCES, own.positions, f"{where}.mixers.0.positions")(own.positions),
    }
    scale = _SCORES[own.score.kind()]
    farthest = getattr(own.positions, "farthest", 0)
    return Described(1, own.heads, mixers, options, join.norm.epsilon, scale, farthest)


def _word(table: Mapping[str, Any], spec: Spec, where: str) -> Any:
    kind = spec.kind() or ""
    if kind not in table:
        raise InexpressibleError(f"{where}.kind is {kind!r}: it knows {', '.join(table)}")
    return table[kind]


# ---------------------------------------------------------------- weights


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


def _encoder(spec: EncoderSpec, said: Described, weights: Named, with_segments: bool) -> TheirSpec:
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


def _decoder(spec: DecoderSpec, said: Described, weights: Named, with_memory: bool) -> TheirSpec:
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
    for field, usual in (("table", None), ("segments", 0), ("spelling", None)):
        if (value := getattr(spec, field)) != usual:
            raise InexpressibleError(f"{where}.{field} is {value!r}: it has only tokens and positions")
    table.weight = weights["tokens.weight"]
    stack.scale_embeddings = spec.scale
    positions = _word(_ADDED, spec.positions, f"{where}.positions")(spec, weights)
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
