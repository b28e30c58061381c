"""Small whole models of every family, and of families that meet in the middle."""

from regard.mixers.attention import MemoryAttentionSpec, SelfAttentionSpec
from regard.mixers.attentive import LookThenStepSpec, StepThenLookSpec
from regard.mixers.convolution import ConvolutionSpec
from regard.mixers.mixer import MixerSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.parts.cells import GatedSpec, LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.norms import LayerNormSpec
from regard.parts.pooling import EndsSpec, FirstSpec
from regard.parts.positions import (
    LearnedSpec,
    NoPositionSpec,
    PairPositionSpec,
    PositionSpec,
    RelativeSpec,
    RotarySpec,
    SinusoidalSpec,
)
from regard.stacks.join import HalvedSpec, JoinSpec, PlainSpec, PostNormSpec, PreNormSpec
from regard.stacks.stack import BlockSpec, StackSpec

LONGEST = 17


def encoder(
    width: int,
    *mixers: MixerSpec,
    join: JoinSpec | None = None,
    positions: PositionSpec | None = None,
    repeat: int = 1,
    final_norm: bool = False,
) -> EncoderSpec:
    embedding, stack = _parts(width, mixers, join, positions, repeat, final_norm)
    return EncoderSpec(embedding=embedding, stack=stack)


def decoder(
    width: int,
    *mixers: MixerSpec,
    join: JoinSpec | None = None,
    positions: PositionSpec | None = None,
    repeat: int = 1,
    final_norm: bool = False,
) -> DecoderSpec:
    embedding, stack = _parts(width, mixers, join, positions, repeat, final_norm)
    return DecoderSpec(embedding=embedding, stack=stack)


def _parts(
    width: int,
    mixers: tuple[MixerSpec, ...],
    join: JoinSpec | None,
    positions: PositionSpec | None,
    repeat: int,
    final_norm: bool,
) -> tuple[EmbeddingSpec, StackSpec]:
    block = BlockSpec(mixers=mixers, join=join or PlainSpec(), repeat=repeat)
    return (
        EmbeddingSpec(width=width, positions=positions or NoPositionSpec(), scale=positions is not None),
        StackSpec(blocks=(block,), final_norm=LayerNormSpec() if final_norm else None),
    )


def attention(heads: int, positions: PairPositionSpec | None = None) -> SelfAttentionSpec:
    return (
        SelfAttentionSpec(heads=heads)
        if positions is None
        else SelfAttentionSpec(heads=heads, positions=positions)
    )


def transformer_encoder(width: int = 12, heads: int = 3, hidden: int = 19, layers: int = 2) -> EncoderSpec:
    return encoder(
        width,
        attention(heads),
        PointwiseSpec(hidden=hidden),
        join=PostNormSpec(),
        positions=SinusoidalSpec(),
        repeat=layers,
    )


def transformer_decoder(width: int = 12, heads: int = 3, hidden: int = 19, layers: int = 2) -> DecoderSpec:
    return decoder(
        width,
        attention(heads),
        MemoryAttentionSpec(heads=heads),
        PointwiseSpec(hidden=hidden),
        join=PostNormSpec(),
        positions=SinusoidalSpec(),
        repeat=layers,
    )


def both_ways(embedded: int = 7, width: int = 5, layers: int = 2) -> EncoderSpec:
    return encoder(
        embedded, RecurrentSpec(cell=LongShortTermSpec(width=width), direction="both"), repeat=layers
    )


def convolutions(width: int = 12, kernel: int = 3, layers: int = 2) -> SequenceToSequenceSpec:
    """Gated convolution on both sides, attention in every layer of the decoder (Gehring et al. 2017)."""
    return SequenceToSequenceSpec(
        encoder=encoder(
            width,
            ConvolutionSpec(kernel=kernel),
            join=HalvedSpec(),
            positions=LearnedSpec(longest=LONGEST),
            repeat=layers,
        ),
        decoder=decoder(
            width,
            ConvolutionSpec(kernel=kernel, causal=True),
            MemoryAttentionSpec(heads=1),
            join=HalvedSpec(),
            positions=LearnedSpec(longest=LONGEST),
            repeat=layers,
        ),
    )


MODELS: dict[str, SequenceToSequenceSpec] = {
    "transformer": SequenceToSequenceSpec(encoder=transformer_encoder(), decoder=transformer_decoder()),
    "transformer, pre-norm, rotary and relative, tied": SequenceToSequenceSpec(
        encoder=encoder(
            12,
            attention(3, RotarySpec()),
            PointwiseSpec(hidden=19, gated=True),
            join=PreNormSpec(),
            final_norm=True,
        ),
        decoder=decoder(
            12,
            attention(3, RelativeSpec(farthest=2)),
            MemoryAttentionSpec(heads=2),
            join=PreNormSpec(),
            final_norm=True,
        ),
        tie="target",
    ),
    "last state only": SequenceToSequenceSpec(
        encoder=both_ways(),
        decoder=decoder(7, RecurrentSpec(cell=GatedSpec(width=11), bridge=EndsSpec())),
    ),
    "recurrent, looking first": SequenceToSequenceSpec(
        encoder=both_ways(),
        decoder=decoder(7, LookThenStepSpec(cell=GatedSpec(width=11), readout=13, bridge=FirstSpec())),
    ),
    "recurrent, deep, looking last": SequenceToSequenceSpec(
        encoder=both_ways(),
        decoder=decoder(
            7,
            RecurrentSpec(cell=LongShortTermSpec(width=11)),
            StepThenLookSpec(cell=LongShortTermSpec(width=13)),
        ),
    ),
    "convolutions": convolutions(),
    "transformer read by a recurrent decoder": SequenceToSequenceSpec(
        encoder=transformer_encoder(),
        decoder=decoder(7, LookThenStepSpec(cell=LongShortTermSpec(width=11), readout=13)),
    ),
    "recurrent encoder read by a transformer": SequenceToSequenceSpec(
        encoder=both_ways(), decoder=transformer_decoder()
    ),
}
