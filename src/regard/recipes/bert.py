"""Readers that learn by guessing hidden words: BERT (Devlin et al. 2019) and what came of it.

Laptop sizes turn positions into queries and keys; the original size adds learned ones to its input.
"""

from typing import Literal

from regard.data.hiding import HidingSpec
from regard.data.passages import PassagesSpec
from regard.data.relations import FollowingSpec, OrderSpec, RelationSpec
from regard.data.tokenizers import TokenizerSpec
from regard.heads.labels import LabelSpec
from regard.heads.vocabulary import RephrasingSpec, VocabularySpec
from regard.mixers.attention import SelfAttentionSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.models.detector import DetectorSpec
from regard.models.encoder import EncoderSpec
from regard.models.masked import MaskedModelSpec
from regard.objectives.hidden_tokens import HiddenTokensSpec
from regard.objectives.replaced_tokens import ReplacedTokensSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.norms import LayerNormSpec
from regard.parts.positions import (
    LearnedSpec,
    NoPairPositionSpec,
    NoPositionSpec,
    PairPositionSpec,
    PositionSpec,
    RotarySpec,
)
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.stacks.join import PostNormSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.detecting import DetectingSpec
from regard.tasks.filling import FillingSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.optimisation import Muon
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def bert() -> SystemSpec:
    """Hidden words, and whether a second passage follows; 4 layers, 256 wide, rotary positions."""
    model = quick_bert(layers=4, width=256, heads=4, segments=2, compares=True)
    return guessing(model, unit="wordpiece", relation=FollowingSpec())


def bert_base() -> SystemSpec:
    """The original: 12 layers, 768 wide, 12 heads, 30,522 pieces, 512 learned positions."""
    model = bert_model(
        layers=12,
        width=768,
        heads=12,
        positions=LearnedSpec(longest=512),
        distances=NoPairPositionSpec(),
        segments=2,
        compares=True,
    )
    system = guessing(model, unit="wordpiece", relation=FollowingSpec())
    return system.override(["data.tokenizer.size=30522"])


def roberta() -> SystemSpec:
    """Hidden words only, byte-level subwords, full rows (Liu et al. 2019 §4.2); as large as ``bert``."""
    return guessing(quick_bert(layers=4, width=256, heads=4), unit="byte_bpe")


def albert() -> SystemSpec:
    """One layer used eight times, a narrow table of words, the order of passages (Lan et al. 2020)."""
    model = quick_bert(layers=8, width=256, heads=4, segments=2, compares=True, table=128, shared=True)
    return guessing(model, unit="wordpiece", relation=OrderSpec())


def electra() -> SystemSpec:
    """Which tokens a reader a quarter as wide has put there (Clark et al. 2020); 4 layers, 256 wide."""
    reader, generator = (
        quick_bert(layers=4, width=width, heads=heads, table=128) for width, heads in ((256, 4), (64, 1))
    )
    system = guessing(generator, unit="wordpiece")
    return system.model_copy(
        update={
            "data": system.data.model_copy(update={"hiding": HidingSpec(masked=0.85, random=0.0)}),
            "model": DetectorSpec(encoder=reader.encoder, generator=generator),
            "objective": ReplacedTokensSpec(),
            "task": DetectingSpec(),
            "evaluation": EvaluationSpec(metric=None),
        }
    )


def quick_bert(
    layers: int,
    width: int,
    heads: int,
    segments: int = 0,
    compares: bool = False,
    table: int | None = None,
    shared: bool = False,
) -> MaskedModelSpec:
    """Learns from fewer updates: positions turned into queries and keys (Su et al. 2021), none added.

    With learned positions it stays for thousands of updates at what the frequencies of words say.
    """
    return bert_model(
        layers,
        width,
        heads,
        positions=NoPositionSpec(),
        distances=RotarySpec(),
        segments=segments,
        compares=compares,
        table=table,
        shared=shared,
    )


def bert_model(
    layers: int,
    width: int,
    heads: int,
    positions: PositionSpec,
    distances: PairPositionSpec,
    segments: int = 0,
    compares: bool = False,
    table: int | None = None,
    shared: bool = False,
    dropout: float = 0.1,
    epsilon: float = 1e-12,
) -> MaskedModelSpec:
    norm = LayerNormSpec(epsilon=epsilon)
    block = BlockSpec(
        mixers=(
            SelfAttentionSpec(heads=heads, positions=distances, dropout=0.0),
            PointwiseSpec(hidden=4 * width, activation="gelu"),
        ),
        join=PostNormSpec(dropout=dropout, norm=norm),
        repeat=layers,
        shared=shared,
    )
    embedding = EmbeddingSpec(
        width=width,
        table=table,
        positions=positions,
        segments=segments,
        norm=norm,
        dropout=dropout,
    )
    return MaskedModelSpec(
        encoder=EncoderSpec(embedding=embedding, stack=StackSpec(blocks=(block,))),
        head=VocabularySpec(bias=True, rephrasing=RephrasingSpec(norm=norm)),
        relation=LabelSpec(hidden=width, dropout=0.0) if compares else None,
    )


def guessing(
    model: MaskedModelSpec, unit: Literal["wordpiece", "byte_bpe"], relation: RelationSpec | None = None
) -> SystemSpec:
    return SystemSpec(
        data=PassagesSpec(
            tokenizer=TokenizerSpec(unit=unit, size=10_000, lowercase=unit == "wordpiece", hides=True),
            window=128,
            rows=16,
            relation=relation,
            short=0.0 if relation is None else 0.1,
        ),
        model=model,
        objective=HiddenTokensSpec(),
        training=TrainingSpec(
            minutes=60,
            optimiser=Muon(),
            schedule=Linear(peak=2e-3, warmup=400),
            clip=1.0,
            validation=ValidationSpec(every=500),
        ),
        task=FillingSpec(),
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric="accuracy", examples=200),
    )
