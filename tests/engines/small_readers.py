"""Random readers of every form that CTranslate2 knows, alone and with something read off them."""

from collections.abc import Callable
from pathlib import Path

from regard.apps.session import Run
from regard.data.labels import Labels
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.models.model import ModelSpec
from regard.models.reader import GistSpec, ReaderSpec
from regard.parts.pooling import SummingUpSpec
from regard.parts.positions import LearnedSpec, NoPairPositionSpec
from regard.recipes.bert import bert_model
from regard.recipes.labelling import classifier, pair_classifier, similarity
from regard.recipes.reading import reading
from regard.recipes.system import SystemSpec
from tests.apps.toys import pairs
from tests.engines.small import drawn_run, stored

POSITIONS = 24
SENTENCES = ["", *(source for source, _ in pairs(20, seed=5)), *(f"{a} {b}" for a, b in pairs(6, seed=6))]
PAIRS = [f"{source}\t{target}" for source, target in pairs(12, seed=7)]


def reader(*settings: str, segments: int = 2) -> SystemSpec:
    positions, distances = LearnedSpec(longest=POSITIONS), NoPairPositionSpec()
    encoder = bert_model(2, 16, 2, positions, distances, segments=segments, dropout=0.0).encoder
    model = ReaderSpec(encoder=encoder, gist=GistSpec())
    return reading(model, 60, SummingUpSpec(), longest=POSITIONS).override(list(settings))


_BLOCK = "model.encoder.stack.blocks.0"
_NOWHERE = "model.encoder.embedding.positions={kind: none}"
ROTARY = (_NOWHERE, f"{_BLOCK}.mixers.0.positions={{kind: rotary}}")
_PRE_NORM = (
    f"{_BLOCK}.join={{kind: pre_norm}}",
    "model.encoder.stack.final_norm={kind: layer}",
    "model.encoder.embedding.norm={kind: layer}",
)
READERS: dict[str, Callable[[], SystemSpec]] = {
    "bert": reader,
    "one segment": lambda: reader(segments=0),
    "pre-norm, scaled, sinusoidal": lambda: reader(
        *_PRE_NORM,
        "model.encoder.embedding.scale=true",
        "model.encoder.embedding.positions={kind: sinusoidal}",
    ),
    "rotary": lambda: reader(*ROTARY),
    "rotary, gated": lambda: reader(*ROTARY, f"{_BLOCK}.mixers.1.gated=true"),
    "relative": lambda: reader(_NOWHERE, f"{_BLOCK}.mixers.0.positions={{kind: relative, farthest: 3}}"),
    "buckets": lambda: reader(
        _NOWHERE, f"{_BLOCK}.mixers.0.positions={{kind: buckets, buckets: 8, farthest: 20}}"
    ),
}


def _started(*settings: str) -> ModelSpec:
    return reader(*settings, "model.encoder.embedding.scale=true").model


JUDGES: dict[str, Callable[[], SystemSpec]] = {
    "classifier": lambda: classifier(_started()),
    "pair_classifier": lambda: pair_classifier(_started()),
    "pair_classifier, rotary": lambda: pair_classifier(_started(*ROTARY)),
    "similarity": lambda: similarity(_started()),
}


def reader_of(spec: SystemSpec, folder: Path) -> Run:
    lines = [side for pair in pairs(160) for side in pair]
    tokenizer = Tokenizer.train(TokenizerSpec(unit="wordpiece", size=60, lowercase=True), lines)
    return stored(drawn_run(spec, Lexicon({"text": tokenizer}, {"label": Labels(("a", "b", "c"))}), folder))
