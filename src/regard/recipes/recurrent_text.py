"""Recurrent language models: over characters (Karpathy 2015) and over words (Zaremba et al. 2014)."""

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.decoder import DecoderSpec
from regard.models.language_model import LanguageModelSpec
from regard.parts.cells import CellSpec, LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.recipes.running_text import running_text
from regard.recipes.system import SystemSpec
from regard.stacks.join import PlainSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.training.optimisation import Adam


def char_lm() -> SystemSpec:
    """Two layers of 256, state carried from window to window."""
    data = TextSpec(tokenizer=TokenizerSpec(unit="character", size=1000), order="running", window=64, rows=32)
    model = recurrent_model(LongShortTermSpec(width=256), layers=2, embedding=64, dropout=0.1, tied=False)
    return running_text(data, model, Adam(), peak=5e-3, warmup=100)


def rnn_lm() -> SystemSpec:
    """Two layers of 200, tied, lines of text one after another (Zaremba's small size)."""
    data = TextSpec(
        tokenizer=TokenizerSpec(unit="word", size=10_000),
        documents="line",
        order="running",
        window=35,
        rows=20,
    )
    model = recurrent_model(LongShortTermSpec(width=200), layers=2, embedding=200, dropout=0.4, tied=True)
    return running_text(data, model, Adam(), peak=5e-3, warmup=200, clip=0.5)


def recurrent_model(
    cell: CellSpec, layers: int, embedding: int, dropout: float, tied: bool
) -> LanguageModelSpec:
    """Dropout between layers and at both ends, never along time (Zaremba et al. 2014 §3.1)."""
    block = BlockSpec(mixers=(RecurrentSpec(cell=cell),), join=PlainSpec(dropout=dropout), repeat=layers)
    return LanguageModelSpec(
        decoder=DecoderSpec(
            embedding=EmbeddingSpec(width=embedding, dropout=dropout), stack=StackSpec(blocks=(block,))
        ),
        tied=tied,
    )
