"""What our specs say of a stack of layers, in CTranslate2's words.

Whatever it has no word for is refused by name of the field, so who asks learns why another engine answers.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from ctranslate2 import specs as theirs

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.stacks.stack import StackSpec


class InexpressibleError(UsageError):
    """This model says something that the other program cannot."""


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


def described(side: Any, mixers: tuple[str, ...], where: str, both_ways: bool) -> Described:
    """What the spec of an encoder or a decoder says of its stack, whose layers must have these mixers."""
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
        word_for(_SCORES, one.score, f"{path}.score")
        if (one.heads, one.score) != (own.heads, own.score):
            raise InexpressibleError(
                f"{path} has other heads or scores than the first; it has one number for all"
            )
    if own.radius is not None:
        raise InexpressibleError(f"{where}.mixers.0.radius is {own.radius}: it looks at all")
    options = {
        "pre_norm": word_for(_JOINS, join, f"{where}.join"),
        "rms_norm": word_for(_NORMS, join.norm, f"{where}.join.norm"),
        "activation": theirs.Activation[_ACTIVATIONS[network.activation]],
        "ffn_glu": network.gated,
        **word_for(_DISTANCES, own.positions, f"{where}.mixers.0.positions")(own.positions),
    }
    scale = _SCORES[own.score.kind()]
    farthest = getattr(own.positions, "farthest", 0)
    return Described(1, own.heads, mixers, options, join.norm.epsilon, scale, farthest)


def word_for(table: Mapping[str, Any], spec: Spec, where: str) -> Any:
    """What it calls a part of this kind."""
    kind = spec.kind() or ""
    if kind not in table:
        raise InexpressibleError(f"{where}.kind is {kind!r}: it knows {', '.join(table)}")
    return table[kind]
