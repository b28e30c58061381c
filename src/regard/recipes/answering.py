"""Questions about a text, answered by quoting it; from nothing, or from a model that has read before."""

from regard.data.quotes import QuotesSpec
from regard.data.tokenizers import TokenizerSpec
from regard.heads.quotes import QuoteSpec
from regard.mixers.attention import SelfAttentionSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.encoder import EncoderSpec
from regard.models.labeller import LabellerSpec
from regard.models.model import ModelSpec
from regard.parts.cells import LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.norms import LayerNormSpec
from regard.recipes.labelling import (
    labeller,
    layout_for,
    learning,
    objective_for,
    room_for,
    spells,
    writes,
)
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.stacks.join import PlainSpec, PreNormSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.quoting import QuotingSpec
from regard.training.evaluation import EvaluationSpec


def span_answerer(start: ModelSpec | None = None) -> SystemSpec:
    """Begin and end are read off every token of the text (Devlin et al. 2019 §4.2)."""
    head, longest = QuoteSpec(dropout=0.1), room_for(start, usual=320)
    model = (
        labeller(start, head) if start is not None else LabellerSpec(encoder=attentive_reader(), head=head)
    )
    return SystemSpec(
        data=QuotesSpec(
            tokenizer=TokenizerSpec(unit="word", size=30_000, lowercase=True, min_count=2),
            letters=spells(start),
            layout=layout_for(start),
            matches=start is None,
            nothing_at="last" if writes(start) else "first",
            longest=longest,
            longest_question=min(64, longest // 3),
            stride=min(128, longest // 3),
            batch_tokens=2048,
        ),
        model=model,
        objective=objective_for(start),
        training=learning(start is None, "f1", 10.0, model.encoder.embedding.width, every=300),
        task=QuotingSpec(),
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric="f1", examples=500),
    )


def attentive_reader(width: int = 128, hidden: int = 96, dropout: float = 0.3) -> EncoderSpec:
    """What stands next to each other by an LSTM, question and text by attention, then both again by an LSTM.

    A third segment tells which words of the text the question has, too (Chen et al. 2017 §3.2).
    """
    recurrent = RecurrentSpec(cell=LongShortTermSpec(width=hidden), direction="both")
    first = BlockSpec(mixers=(recurrent,), join=PlainSpec(dropout=dropout))
    again = BlockSpec(mixers=(SelfAttentionSpec(heads=4), recurrent), join=PreNormSpec(dropout=dropout))
    return EncoderSpec(
        embedding=EmbeddingSpec(width=width, segments=3, dropout=dropout),
        stack=StackSpec(blocks=(first, again), final_norm=LayerNormSpec()),
    )
