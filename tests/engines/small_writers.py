"""Random language models of every form that CTranslate2 knows, as runs on disk."""

from collections.abc import Callable
from pathlib import Path

from regard.apps.session import Run
from regard.data.lexicon import Lexicon
from regard.data.text import TextSpec
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.recipes.gpt import gpt_model
from regard.recipes.running_text import running_text
from regard.recipes.system import SystemSpec
from regard.search.greedy import GreedySpec
from regard.training.optimisation import AdamW
from tests.apps.toys import pairs
from tests.engines.small import drawn_run, make_it_end, stored

POSITIONS = 20
LONG = " ".join(source for source, _ in pairs(12, seed=3))
PROMPTS = ["", *(LONG[:size] for size in (3, 1, 8, 5, 20, 11, 8, 40, 30)), *(LONG[at:] for at in (30, 34))]


def writer(*settings: str, pre_norm: bool = True) -> SystemSpec:
    model = gpt_model(2, 16, heads=2, positions=POSITIONS, dropout=0.0, pre_norm=pre_norm)
    data = TextSpec(tokenizer=TokenizerSpec(unit="bpe", size=60), window=POSITIONS, rows=2)
    whole = running_text(data, model, AdamW(), peak=1e-3, warmup=1)
    return whole.override(["model.decoder.head.bias=true", *settings])


_ATTENTION = "model.decoder.stack.blocks.0.mixers.0"
_NETWORK = "model.decoder.stack.blocks.0.mixers.1"
_NOWHERE = "model.decoder.embedding.positions={kind: none}"
WRITERS: dict[str, Callable[[], SystemSpec]] = {
    "gpt": writer,
    "post-norm, normed embeddings": lambda: writer(
        "model.decoder.embedding.norm={kind: layer}", pre_norm=False
    ),
    "rotary": lambda: writer(_NOWHERE, f"{_ATTENTION}.positions={{kind: rotary}}"),
    "sinusoidal, scaled, own words": lambda: writer(
        "model.decoder.embedding.positions={kind: sinusoidal}",
        "model.decoder.embedding.scale=true",
        "model.tied=false",
    ),
    "no positions, gated": lambda: writer(_NOWHERE, f"{_NETWORK}.gated=true", f"{_NETWORK}.bias=false"),
    "relative, dot": lambda: writer(
        _NOWHERE, f"{_ATTENTION}.positions={{kind: relative, farthest: 3}}", f"{_ATTENTION}.score.kind=dot"
    ),
    "backwards, nothing before a prompt": lambda: writer(
        "data.backwards=true", "task.backwards=true", "task.opened=false"
    ),
}


def writer_of(spec: SystemSpec, folder: Path, ending: bool = True) -> Run:
    """One that ends some of its texts by itself."""
    lines = [side for pair in pairs(160) for side in pair]
    lexicon = Lexicon({"text": Tokenizer.train(TokenizerSpec(unit="bpe", size=60), lines)})
    drawn = drawn_run(spec, lexicon, folder, factor=6.0)
    if ending:
        make_it_end(drawn, lexicon["text"].end, PROMPTS[:8], GreedySpec(longest_ratio=0, longest_extra=12))
    return stored(drawn)
