"""Weights of Hugging Face translators put into ours.

BART and Marian are the same drawing, a post-norm Transformer with an output bias; they differ in how tokens
are embedded. BART's table of positions begins with two rows that no token uses.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is ever fetched: models are made from small configurations

import torch
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration, MarianConfig, MarianMTModel
from transformers.models.bart.modeling_bart import BartDecoder, BartEncoder
from transformers.models.marian.modeling_marian import MarianDecoder, MarianEncoder

from regard.heads.vocabulary import VocabularySpec
from regard.mixers.attention import MemoryAttention, MemoryAttentionSpec, SelfAttention, SelfAttentionSpec
from regard.mixers.pointwise import Pointwise, PointwiseSpec
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.sequence_to_sequence import SequenceToSequence, SequenceToSequenceSpec
from regard.parts.embeddings import Embedding, EmbeddingSpec
from regard.parts.feedforward import type_of_activation
from regard.parts.norms import LayerNormSpec
from regard.parts.positions import Learned, LearnedSpec
from regard.stacks.join import PostNormSpec
from regard.stacks.stack import BlockSpec, Layer, StackSpec

Theirs = BartForConditionalGeneration | MarianMTModel
ACTIVATION: dict[str, type_of_activation] = {"gelu": "gelu", "swish": "silu", "relu": "relu"}
UNUSED_ROWS = 2
PADDING, END = 36, 2
SHAPE = {
    "vocab_size": 37,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 29,
    "decoder_ffn_dim": 31,
    "max_position_embeddings": 19,
    "pad_token_id": PADDING,
    "bos_token_id": 0,
    "eos_token_id": END,
    "decoder_start_token_id": PADDING,
    "forced_eos_token_id": None,
}


def bart() -> BartForConditionalGeneration:
    """Post-norm, learned positions, a norm on the embedding, GELU."""
    return BartForConditionalGeneration(BartConfig(**SHAPE, activation_function="gelu"))


def marian() -> MarianMTModel:
    """Post-norm, sinusoids (sines, then cosines), scaled embeddings, swish."""
    return MarianMTModel(MarianConfig(**SHAPE, activation_function="swish", scale_embedding=True))


def build_like(theirs: Theirs) -> SequenceToSequence:
    """Our model of the same shape with the same weights."""
    ours = spec_like(theirs).build({"source": theirs.config.vocab_size, "target": theirs.config.vocab_size})
    copy_embedding(theirs.model.encoder, ours.encoder.embedding)
    copy_embedding(theirs.model.decoder, ours.decoder.embedding)
    for source, target in zip(theirs.model.encoder.layers, ours.encoder.stack.layers, strict=True):
        copy_encoder_layer(source, target)
    for source, target in zip(theirs.model.decoder.layers, ours.decoder.stack.layers, strict=True):
        copy_decoder_layer(source, target)
    ours.decoder.head.words.bias.data = theirs.final_logits_bias[0]
    return ours


def spec_like(theirs: Theirs) -> SequenceToSequenceSpec:
    config = theirs.config
    embedding = EmbeddingSpec(
        width=config.d_model,
        positions=LearnedSpec(longest=config.max_position_embeddings),
        scale=config.scale_embedding,
        norm=LayerNormSpec() if isinstance(theirs, BartForConditionalGeneration) else None,
    )
    activation = ACTIVATION[config.activation_function]
    encoder = BlockSpec(
        mixers=(
            SelfAttentionSpec(heads=config.encoder_attention_heads),
            PointwiseSpec(hidden=config.encoder_ffn_dim, activation=activation),
        ),
        join=PostNormSpec(),
        repeat=config.encoder_layers,
    )
    decoder = BlockSpec(
        mixers=(
            SelfAttentionSpec(heads=config.decoder_attention_heads),
            MemoryAttentionSpec(heads=config.decoder_attention_heads),
            PointwiseSpec(hidden=config.decoder_ffn_dim, activation=activation),
        ),
        join=PostNormSpec(),
        repeat=config.decoder_layers,
    )
    return SequenceToSequenceSpec(
        encoder=EncoderSpec(embedding=embedding, stack=StackSpec(blocks=(encoder,))),
        decoder=DecoderSpec(
            embedding=embedding, stack=StackSpec(blocks=(decoder,)), head=VocabularySpec(bias=True)
        ),
        tie="all",
    )


def copy(source: nn.Module, target: nn.Module) -> None:
    target.load_state_dict(source.state_dict())


def copy_embedding(
    source: BartEncoder | BartDecoder | MarianEncoder | MarianDecoder, target: Embedding
) -> None:
    target.tokens.weight.data = source.embed_tokens.weight.data
    assert isinstance(target.positions, Learned)
    rows = source.embed_positions.weight.data
    target.positions.table.weight.data = rows[len(rows) - target.positions.table.num_embeddings :]
    if target.norm is not None:
        assert len(rows) == target.positions.table.num_embeddings + UNUSED_ROWS
        copy(source.layernorm_embedding, target.norm)


def copy_self_attention(source: nn.Module, target: SelfAttention) -> None:
    join_linears(target.project, source.q_proj, source.k_proj, source.v_proj)
    copy(source.out_proj, target.out)


def copy_memory_attention(source: nn.Module, target: MemoryAttention) -> None:
    copy(source.q_proj, target.query)
    join_linears(target.project, source.k_proj, source.v_proj)
    copy(source.out_proj, target.out)


def join_linears(target: nn.Linear, *sources: nn.Linear) -> None:
    """Several matrices as one, one under the other."""
    target.weight.data = torch.cat([source.weight.data for source in sources])
    target.bias.data = torch.cat([source.bias.data for source in sources])


def copy_feedforward(source: nn.Module, target: Pointwise) -> None:
    copy(source.fc1, target.network.widen)
    copy(source.fc2, target.network.narrow)


def copy_norms(target: Layer, *sources: nn.Module) -> None:
    for source, join in zip(sources, target.joins, strict=True):
        copy(source, join.norm)


def copy_encoder_layer(source: nn.Module, target: Layer) -> None:
    looking, thinking = target.mixers
    copy_self_attention(source.self_attn, looking)
    copy_feedforward(source, thinking)
    copy_norms(target, source.self_attn_layer_norm, source.final_layer_norm)


def copy_decoder_layer(source: nn.Module, target: Layer) -> None:
    looking, looking_back, thinking = target.mixers
    copy_self_attention(source.self_attn, looking)
    copy_memory_attention(source.encoder_attn, looking_back)
    copy_feedforward(source, thinking)
    copy_norms(
        target,
        source.self_attn_layer_norm,
        source.encoder_attn_layer_norm,
        source.final_layer_norm,
    )
