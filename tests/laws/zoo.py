"""One small example of every mixer, in every form that changes what it computes."""

from regard.mixers.attention import MemoryAttentionSpec, SelfAttentionSpec
from regard.mixers.attentive import LookThenStepSpec, StepThenLookSpec
from regard.mixers.convolution import ConvolutionSpec, ParallelConvolutionSpec
from regard.mixers.mixer import MixerSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.parts.cells import CellSpec, ElmanSpec, GatedSpec, LongShortTermSpec, PeepholeSpec, ProjectedSpec
from regard.parts.filters import Filters
from regard.parts.pooling import EndsSpec, FirstSpec, LastSpec, MaxSpec, MeanSpec
from regard.parts.positions import BucketsSpec, DistanceSpec, RelativeSpec, RotarySpec
from regard.parts.scores import (
    AdditiveSpec,
    ConcatSpec,
    CosineSpec,
    DotSpec,
    GeneralSpec,
    LocationSpec,
    ScaledSpec,
    ScoreSpec,
)

WIDTH, MEMORY_WIDTH = 12, 12
FILTERS = (Filters(width=4, count=5), Filters(width=1, count=2), Filters(width=3, count=7))

SCORES: dict[str, ScoreSpec] = {
    "dot": DotSpec(),
    "scaled": ScaledSpec(),
    "general": GeneralSpec(),
    "concat": ConcatSpec(hidden=5),
    "additive": AdditiveSpec(hidden=7),
    "cosine": CosineSpec(),
    "location": LocationSpec(longest=17),
}
CELLS: dict[str, CellSpec] = {
    "rnn": ElmanSpec(width=12),
    "relu rnn": ElmanSpec(width=12, activation="relu"),
    "lstm": LongShortTermSpec(width=12),
    "gru": GatedSpec(width=12),
    "peephole": PeepholeSpec(width=12),
    "projected lstm": ProjectedSpec(width=12, held=15),
}

CAUSAL: dict[str, MixerSpec] = {
    "pointwise": PointwiseSpec(hidden=11),
    "pointwise gated": PointwiseSpec(hidden=11, activation="gelu", gated=True, bias=False),
    "causal convolution": ConvolutionSpec(kernel=3, causal=True),
    "causal convolution, even kernel": ConvolutionSpec(kernel=4, causal=True),
    "causal convolutions side by side": ParallelConvolutionSpec(filters=FILTERS, causal=True),
    "attention rotary": SelfAttentionSpec(heads=3, positions=RotarySpec()),
    "attention relative": SelfAttentionSpec(heads=3, positions=RelativeSpec(farthest=2)),
    "attention buckets": SelfAttentionSpec(heads=3, positions=BucketsSpec(buckets=8, farthest=6)),
    "attention distance": SelfAttentionSpec(heads=3, positions=DistanceSpec()),
    "attention windowed": SelfAttentionSpec(heads=2, radius=2),
    "attention of inputs": SelfAttentionSpec(heads=3, carries="inputs", positions=RotarySpec()),
    "attention of inputs by distance": SelfAttentionSpec(
        heads=3, carries="inputs", positions=DistanceSpec(), radius=3
    ),
    "recurrent bridged": RecurrentSpec(cell=LongShortTermSpec(width=12), bridge=LastSpec()),
    "projected recurrent bridged": RecurrentSpec(cell=ProjectedSpec(width=12, held=15), bridge=LastSpec()),
    "step_then_look unfed": StepThenLookSpec(cell=GatedSpec(width=12), feeding=False, bridge=EndsSpec()),
    **{f"attention {name}": SelfAttentionSpec(heads=2, score=score)
       for name, score in SCORES.items() if name != "location"},
    **{f"memory {name}": MemoryAttentionSpec(heads=2, score=score) for name, score in SCORES.items()},
    **{f"recurrent {name}": RecurrentSpec(cell=cell) for name, cell in CELLS.items()},
    **{f"look_then_step {name}": LookThenStepSpec(cell=GatedSpec(width=12), score=score, readout=12)
       for name, score in SCORES.items()},
    **{f"step_then_look {name}": StepThenLookSpec(cell=cell) for name, cell in CELLS.items()},
}  # fmt: skip

TWO_SIDED: dict[str, MixerSpec] = {
    "convolution": ConvolutionSpec(kernel=5),
    "convolutions side by side": ParallelConvolutionSpec(filters=FILTERS),
    "bidirectional lstm": RecurrentSpec(cell=LongShortTermSpec(width=6), direction="both"),
    "bidirectional peephole": RecurrentSpec(cell=PeepholeSpec(width=6), direction="both"),
    "lstm both ways apart": RecurrentSpec(cell=LongShortTermSpec(width=6), direction="apart"),
    "backward gru": RecurrentSpec(cell=GatedSpec(width=12), direction="backward"),
}

MIXERS = CAUSAL | TWO_SIDED
POOLINGS = (FirstSpec(), LastSpec(), EndsSpec(), MeanSpec(), MaxSpec())
