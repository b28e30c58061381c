"""Small models and traces to look at."""

import numpy as np
import torch

from regard.core.sequences import Tokens
from regard.inspection.trace import Attention, Trace, trace_writing
from regard.mixers.attention import MemoryAttentionSpec, SelfAttentionSpec
from regard.mixers.attentive import LookThenStepSpec, StepThenLookSpec
from regard.mixers.convolution import ConvolutionSpec
from regard.mixers.mixer import MixerSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.sequence_to_sequence import SequenceToSequence, SequenceToSequenceSpec
from regard.parts.cells import GatedSpec, LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.pooling import LastSpec
from regard.parts.positions import SinusoidalSpec
from regard.stacks.join import PlainSpec, PostNormSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.task import Written

WIDTH, VOCABULARY, DROPOUT = 12, 23, 0.3
BEGIN, END = 2, 3

SOURCE = [5, 6, 7, 8, 9]
TARGET = [11, 12, 13]
SOURCE_PIECES = ["▁a", "b", "▁c", "d", "e"]
TARGET_PIECES = ["x", "▁y", "z"]

_PLAIN, _NORMED = PlainSpec(), PostNormSpec(dropout=DROPOUT)
_RECURRENT = (RecurrentSpec(cell=GatedSpec(width=WIDTH // 2), direction="both"),)
_SELF, _MEMORY = SelfAttentionSpec(heads=3), MemoryAttentionSpec(heads=2)
_POINTWISE = PointwiseSpec(hidden=7)


def _model(
    encoder: tuple[MixerSpec, ...],
    decoder: tuple[MixerSpec, ...],
    layers: int,
    normed: bool,
    shared: bool = False,
) -> SequenceToSequence:
    embedding = EmbeddingSpec(width=WIDTH, positions=SinusoidalSpec(), dropout=DROPOUT)
    join = _NORMED if normed else _PLAIN
    stacks = [
        StackSpec(blocks=(BlockSpec(mixers=mixers, join=join, repeat=layers, shared=shared),))
        for mixers in (encoder, decoder)
    ]
    spec = SequenceToSequenceSpec(
        encoder=EncoderSpec(embedding=embedding, stack=stacks[0]),
        decoder=DecoderSpec(embedding=embedding, stack=stacks[1]),
    )
    torch.manual_seed(7)
    return spec.build({"source": VOCABULARY, "target": VOCABULARY})


def transformer(shared: bool = False, layers: int = 2) -> SequenceToSequence:
    return _model((_SELF, _POINTWISE), (_SELF, _MEMORY, _POINTWISE), layers, normed=True, shared=shared)


def looking_first() -> SequenceToSequence:
    return _model(
        _RECURRENT, (LookThenStepSpec(cell=GatedSpec(width=WIDTH), readout=WIDTH),), 1, normed=False
    )


def looking_after(feeding: bool) -> SequenceToSequence:
    mixer = StepThenLookSpec(cell=LongShortTermSpec(width=WIDTH), feeding=feeding)
    return _model(_RECURRENT, (mixer,), 2, normed=False)


def convolutional() -> SequenceToSequence:
    decoder = (ConvolutionSpec(kernel=3, causal=True), _MEMORY)
    return _model((ConvolutionSpec(kernel=3),), decoder, 2, normed=True)


def bottleneck() -> SequenceToSequence:
    return _model(
        _RECURRENT, (RecurrentSpec(cell=GatedSpec(width=WIDTH), bridge=LastSpec()),), 1, normed=False
    )


def trace_pair(
    model: SequenceToSequence, source: Tokens, ids: list[int], read: list[str], pieces: list[str]
) -> Trace:
    return trace_writing(model, Written(lambda: model.start(source), read, ids, pieces))


def trace_of(model: SequenceToSequence) -> Trace:
    return trace_pair(model, Tokens.pad([SOURCE], 0), [BEGIN, *TARGET, END], SOURCE_PIECES, TARGET_PIECES)


def made_up(source: list[str], target: list[str], layers: int = 1, heads: int = 2, seed: int = 0) -> Trace:
    """A trace that no model made: any pieces, any size."""
    random = np.random.default_rng(seed)
    rows = (*target, "⟨end⟩")
    shapes = {
        ("encoder", "itself"): (tuple(source), tuple(source)),
        ("decoder", "itself"): (rows, ("⟨begin⟩", *target)),
        ("decoder", "memory"): (rows, tuple(source)),
    }
    attentions = []
    for (part, looks_at), (names, columns) in shapes.items():
        for layer in range(layers):
            scores = np.exp(3 * random.standard_normal((heads, len(names), len(columns))))
            weights = (scores / scores.sum(-1, keepdims=True)).astype(np.float32)
            name = f"{part}.stack.layers.{layer}.mixers.{int(looks_at == 'memory')}"
            mixer = int(looks_at == "memory")
            attentions.append(Attention(name, part, layer, mixer, looks_at, names, columns, weights))
    log_probs = tuple(np.log(random.uniform(0.2, 1.0, len(rows))).tolist())
    return Trace(tuple(source), tuple(target), True, log_probs, tuple(attentions))
