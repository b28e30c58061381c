"""Recurrent encoder-decoders: without attention, looking before each step, looking after it."""

from regard.mixers.attentive import LookThenStepSpec, StepThenLookSpec
from regard.mixers.mixer import MixerSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.parts.cells import GatedSpec, LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.pooling import EndsSpec, LastSpec
from regard.parts.scores import AdditiveSpec, GeneralSpec
from regard.recipes.system import SystemSpec
from regard.recipes.translation import translation
from regard.stacks.join import PlainSpec
from regard.stacks.stack import BlockSpec, StackSpec


def seq2seq() -> SystemSpec:
    """Two LSTM layers on each side; the decoder starts from the encoder's last state and sees no more."""
    lstm = LongShortTermSpec(width=256)
    return translator(
        encoder=stack(RecurrentSpec(cell=lstm), layers=2),
        decoder=stack(RecurrentSpec(cell=lstm, bridge=LastSpec()), layers=2),
    )


def bahdanau() -> SystemSpec:
    """Bidirectional GRU encoder; the decoder looks with its last state, then steps."""
    looking = LookThenStepSpec(
        cell=GatedSpec(width=320), score=AdditiveSpec(hidden=256), readout=256, bridge=EndsSpec()
    )
    return translator(
        encoder=stack(RecurrentSpec(cell=GatedSpec(width=256), direction="both"), dropout=0.4),
        decoder=stack(looking, dropout=0.4),
        width=256,
        dropout=0.4,
        subwords=6000,
    )


def luong() -> SystemSpec:
    """Bidirectional LSTM encoder; the decoder steps, looks, and feeds what it read out back in."""
    return translator(
        encoder=stack(RecurrentSpec(cell=LongShortTermSpec(width=128), direction="both")),
        decoder=stack(
            StepThenLookSpec(cell=LongShortTermSpec(width=256), score=GeneralSpec(), bridge=EndsSpec())
        ),
    )


def stack(mixer: MixerSpec, layers: int = 1, dropout: float = 0.3) -> StackSpec:
    return StackSpec(blocks=(BlockSpec(mixers=(mixer,), join=PlainSpec(dropout=dropout), repeat=layers),))


def translator(
    encoder: StackSpec,
    decoder: StackSpec,
    width: int = 128,
    dropout: float = 0.3,
    subwords: int = 10_000,
) -> SystemSpec:
    embedding = EmbeddingSpec(width=width, dropout=dropout)
    model = SequenceToSequenceSpec(
        encoder=EncoderSpec(embedding=embedding, stack=encoder),
        decoder=DecoderSpec(embedding=embedding, stack=decoder),
        tie="all",
    )
    return translation(model, peak=3e-3, warmup=100, subwords=subwords)
