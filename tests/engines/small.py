"""Random translators of every form that CTranslate2 knows, as runs on disk. They end by themselves."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from regard.apps.session import Run, load
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.parts.norms import LayerNormSpec, NormSpec, RootMeanSquareSpec
from regard.parts.positions import (
    BucketsSpec,
    LearnedSpec,
    NoPairPositionSpec,
    NoPositionSpec,
    PairPositionSpec,
    PositionSpec,
    RelativeSpec,
    RotarySpec,
    SinusoidalSpec,
)
from regard.recipes.system import SystemSpec
from regard.recipes.transformer import transformer_model
from regard.recipes.translation import translation
from regard.search.greedy import GreedySpec
from regard.search.search import SearchSpec
from regard.stacks.join import JoinSpec, PostNormSpec, PreNormSpec
from regard.training.run_folder import RunFolder
from regard.training.weights import named_weights
from tests.apps.toys import pairs

LONGEST = 40
LINES = [source for source, _ in pairs(24, seed=5)]


def system(
    positions: PositionSpec,
    distances: PairPositionSpec,
    *settings: str,
    pre_norm: bool = True,
    norm: NormSpec | None = None,
) -> SystemSpec:
    norm = norm or LayerNormSpec()
    join: JoinSpec = PreNormSpec(norm=norm) if pre_norm else PostNormSpec(norm=norm)
    model = transformer_model(
        2, 16, 24, 2, 0.0, join, norm if pre_norm else None, positions=positions, distances=distances
    )
    whole = translation(model, peak=1e-3, warmup=1, subwords=60)
    return whole.override(["model.decoder.head.bias=true", *settings])


def one_sided(spec: SystemSpec) -> SystemSpec:
    return spec.override(["model.decoder.stack.blocks.0.mixers.0.positions.two_sided=false"])


_GATED = [
    f"model.{side}.stack.blocks.0.mixers.{place}.{field}"
    for side, place in (("encoder", 1), ("decoder", 2))
    for field in ("gated=true", "activation=gelu_tanh", "bias=false")
]
SYSTEMS: dict[str, Callable[[], SystemSpec]] = {
    "rotary": lambda: system(NoPositionSpec(), RotarySpec()),
    "sinusoidal, post-norm": lambda: system(SinusoidalSpec(), NoPairPositionSpec(), pre_norm=False),
    "learned": lambda: system(LearnedSpec(longest=LONGEST), NoPairPositionSpec()),
    "no positions": lambda: system(NoPositionSpec(), NoPairPositionSpec()),
    "relative": lambda: system(NoPositionSpec(), RelativeSpec(farthest=3)),
    "relative, dot": lambda: system(
        NoPositionSpec(),
        RelativeSpec(farthest=3),
        "model.encoder.stack.blocks.0.mixers.0.score.kind=dot",
        "model.decoder.stack.blocks.0.mixers.0.score.kind=dot",
        "model.decoder.stack.blocks.0.mixers.1.score.kind=dot",
    ),
    "buckets, gated, root mean square": lambda: one_sided(
        system(NoPositionSpec(), BucketsSpec(buckets=8, farthest=20), *_GATED, norm=RootMeanSquareSpec())
    ),
    "normed embeddings, dot": lambda: system(
        LearnedSpec(longest=LONGEST),
        NoPairPositionSpec(),
        "model.encoder.embedding.norm={kind: layer}",
        "model.decoder.embedding.norm={kind: layer}",
        "model.encoder.embedding.scale=false",
        "model.encoder.stack.blocks.0.mixers.0.score.kind=dot",
        pre_norm=False,
    ),
    "two vocabularies": lambda: system(
        NoPositionSpec(), RotarySpec(), "data.joint=false", "model.tie=target"
    ),
}


def run_of(spec: SystemSpec, folder: Path, ending: bool = True) -> Run:
    """Weights as they are drawn, larger, so that answers differ; the end is made likely until it comes."""
    lexicon = lexicon_of(spec)
    drawn = drawn_run(spec, lexicon, folder)
    if ending:
        make_it_end(drawn, lexicon["target"].end, LINES[:8], GreedySpec())
    return stored(drawn)


def drawn_run(spec: SystemSpec, lexicon: Lexicon, folder: Path, factor: float = 4.0) -> Run:
    """Not yet on disk, so that weights may be changed."""
    torch.manual_seed(0)
    model = spec.model.build(lexicon.sizes)
    weights = named_weights(model)
    for name, tensor in weights.items():
        if tensor.dim() > 1:
            tensor.mul_(factor)
        elif "norm" not in name:
            tensor.normal_(std=0.3)
    for name in (name for name in weights if name.endswith("positions.table.weight") and ".mixers." in name):
        # A table of buckets that all layers share.
        weights[name].copy_(weights[f"{name.split('.layers.')[0]}.layers.0.mixers.0.positions.table.weight"])
    return Run(folder, spec, model.eval(), lexicon, torch.device("cpu"), engine="torch")


def make_it_end(run: Run, end: int, lines: Sequence[str], search: SearchSpec) -> None:
    """Most of its answers, by themselves."""
    bias = named_weights(run.model)["decoder.head.words.bias"]
    while 2 * sum(answer.candidates[0].finished for answer in run.answers(lines, search)) <= len(lines):
        bias[end] += 1.0


def stored(run: Run) -> Run:
    folder = RunFolder.create(run.path, run.spec, 0, "none", run.lexicon.files())
    folder.save_weights(named_weights(run.model))
    return load(run.path)


def lexicon_of(spec: SystemSpec) -> Lexicon:
    lines = [side for pair in pairs(160) for side in pair]
    source = Tokenizer.train(TokenizerSpec(unit="bpe", size=60), lines)
    joint = bool(spec.data.to_dict()["joint"])
    target = source if joint else Tokenizer.train(TokenizerSpec(unit="bpe", size=50), lines)
    return Lexicon({"source": source, "target": target})
