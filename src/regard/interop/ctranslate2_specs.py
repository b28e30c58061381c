"""Our models in the terms of CTranslate2: whole ones, and what of a model reads, with their vocabularies."""

from collections.abc import Callable
from typing import Any

from ctranslate2 import specs as theirs

from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer
from regard.interop.ctranslate2_weights import (
    POSITIONS,
    Named,
    TheirSpec,
    Weights,
    their_decoder,
    their_encoder,
)
from regard.interop.ctranslate2_words import InexpressibleError, described
from regard.models.model import ModelSpec
from regard.parts.embeddings import EmbeddingSpec


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
    said = described(spec, ("attention", "pointwise"), where, both_ways=True)
    made = theirs.TransformerEncoderModelSpec(their_encoder(spec, said, Named(weights, model.reads_as), True))
    tokenizer = lexicon["text"]
    made.register_vocabulary(names_of(tokenizer))
    _configure(made.config, tokenizer, said.epsilon)
    return made


def _translator(model: Any, lexicon: Lexicon, weights: Weights) -> TheirSpec:
    encoder = described(model.encoder, ("attention", "pointwise"), "model.encoder", both_ways=True)
    looking = ("attention", "memory_attention", "pointwise")
    decoder = described(model.decoder, looking, "model.decoder", both_ways=False)
    if encoder.epsilon != decoder.epsilon:
        raise InexpressibleError(
            f"norms differ: epsilon is {encoder.epsilon} and {decoder.epsilon}; it has one for all"
        )
    made = theirs.TransformerSpec(
        their_encoder(model.encoder, encoder, Named(weights, "encoder"), with_segments=False),
        their_decoder(model.decoder, decoder, Named(weights, "decoder"), with_memory=True),
    )
    source, target = lexicon["source"], lexicon["target"]
    made.register_source_vocabulary(names_of(source))
    made.register_target_vocabulary(names_of(target))
    _configure(made.config, target, encoder.epsilon)
    made.config.decoder_start_token = names_of(target)[target.begin]
    # Sources come with their end; whoever uses the folder alone adds it the same way.
    return made


def _language_model(model: Any, lexicon: Lexicon, weights: Weights) -> TheirSpec:
    decoder = described(model.decoder, ("attention", "pointwise"), "model.decoder", both_ways=False)
    if "relative_attention_bias" in decoder.options:
        raise InexpressibleError(
            "model.decoder: it counts buckets otherwise when it reads several tokens of a prompt at once"
        )
    made = theirs.TransformerDecoderModelSpec(
        their_decoder(model.decoder, decoder, Named(weights, "decoder"), with_memory=False)
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
