"""Attention is all you need (Vaswani et al. 2017), in three sizes."""

from regard.mixers.attention import MemoryAttentionSpec, SelfAttentionSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.norms import LayerNormSpec, NormSpec
from regard.parts.positions import (
    NoPairPositionSpec,
    NoPositionSpec,
    PairPositionSpec,
    PositionSpec,
    RotarySpec,
    SinusoidalSpec,
)
from regard.recipes.system import SystemSpec
from regard.recipes.translation import translation
from regard.stacks.join import JoinSpec, PostNormSpec, PreNormSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.training.optimisation import Muon


def transformer() -> SystemSpec:
    """3+3 layers, 256 wide, feed-forward 1024, 4 heads."""
    model = quick_transformer(layers=3, width=256, hidden=1024, heads=4, dropout=0.1)
    return translation(model, peak=2e-3, warmup=400, optimiser=Muon())


def transformer_tiny() -> SystemSpec:
    """4+4 layers, 128 wide, feed-forward 256, 4 heads, one embedding for all (Wu et al. 2021 §3)."""
    model = quick_transformer(layers=4, width=128, hidden=256, heads=4, dropout=0.25)
    return translation(model, peak=6e-3, warmup=300, optimiser=Muon(), subwords=6000)


def transformer_base() -> SystemSpec:
    """6+6 layers, 512 wide, feed-forward 2048, 8 heads (table 3, base)."""
    model = original_transformer(layers=6, width=512, hidden=2048, heads=8, dropout=0.1)
    return translation(model, peak=7e-4, warmup=4000)


def original_transformer(
    layers: int, width: int, hidden: int, heads: int, dropout: float
) -> SequenceToSequenceSpec:
    """As drawn in the paper: post-norm, sinusoids added to the input."""
    return transformer_model(
        layers,
        width,
        hidden,
        heads,
        dropout,
        join=PostNormSpec(dropout=dropout),
        final_norm=None,
        positions=SinusoidalSpec(),
        distances=NoPairPositionSpec(),
    )


def quick_transformer(
    layers: int, width: int, hidden: int, heads: int, dropout: float
) -> SequenceToSequenceSpec:
    """Learns from fewer updates: pre-norm (Xiong et al. 2020), positions turned into queries and keys."""
    return transformer_model(
        layers,
        width,
        hidden,
        heads,
        dropout,
        join=PreNormSpec(dropout=dropout),
        final_norm=LayerNormSpec(),
        positions=NoPositionSpec(),
        distances=RotarySpec(),
    )


def transformer_model(
    layers: int,
    width: int,
    hidden: int,
    heads: int,
    dropout: float,
    join: JoinSpec,
    final_norm: NormSpec | None,
    positions: PositionSpec,
    distances: PairPositionSpec,
) -> SequenceToSequenceSpec:
    embedding = EmbeddingSpec(width=width, positions=positions, scale=True, dropout=dropout)
    attention = SelfAttentionSpec(heads=heads, positions=distances)
    network = PointwiseSpec(hidden=hidden)
    encoder = BlockSpec(mixers=(attention, network), join=join, repeat=layers)
    decoder = BlockSpec(
        mixers=(attention, MemoryAttentionSpec(heads=heads), network), join=join, repeat=layers
    )
    return SequenceToSequenceSpec(
        encoder=EncoderSpec(embedding=embedding, stack=StackSpec(blocks=(encoder,), final_norm=final_norm)),
        decoder=DecoderSpec(embedding=embedding, stack=StackSpec(blocks=(decoder,), final_norm=final_norm)),
        tie="all",
    )
