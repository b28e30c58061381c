"""Recurrent language models: over characters (Karpathy 2015), over words (Zaremba et al. 2014), and with
everything switched off at random that can be (AWD-LSTM, Merity et al. 2017).
"""

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.decoder import DecoderSpec
from regard.models.language_model import LanguageModelSpec
from regard.objectives.running_text import RunningTextSpec
from regard.parts.cells import CellSpec, LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.recipes.running_text import running_text
from regard.recipes.system import SystemSpec
from regard.stacks.join import PlainSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.training.optimisation import Adam, AdamW

NO_MOMENTUM = (0.0, 0.99)
"""Of Adam, as for the LSTMs of Melis et al. (2018): after 3,325 updates Penn Treebank's perplexity was
150 without, and 200 with momentum and a lower rate."""


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
    model = recurrent_model(LongShortTermSpec(width=200), layers=2, embedding=200, dropout=0.25, tied=True)
    return running_text(data, model, Adam(betas=NO_MOMENTUM), peak=5e-3, warmup=200, clip=0.5)


def awd_lstm() -> SystemSpec:
    """Three layers, the last as wide as the embedding, in a size for two cores (the authors' has 24 million
    parameters, and more dropout).

    Adam with a falling rate and a moving average of the weights stands for averaged SGD (NT-ASGD).
    """
    data = TextSpec(
        tokenizer=TokenizerSpec(unit="word", size=10_000),
        documents="line",
        order="running",
        window=70,
        jitter=5.0,
        rows=20,
    )
    layers = [
        BlockSpec(
            mixers=(RecurrentSpec(cell=LongShortTermSpec(width=width, weight_dropout=0.2)),),
            join=PlainSpec(dropout=dropout, locked=True),
        )
        for width, dropout in ((200, 0.15), (200, 0.15), (180, 0.25))
    ]
    model = LanguageModelSpec(
        decoder=DecoderSpec(
            embedding=EmbeddingSpec(width=180, dropout=0.2, locked=True, forgets=0.05),
            stack=StackSpec(blocks=tuple(layers)),
        )
    )
    objective = RunningTextSpec(small=2.0, slow=1.0)
    system = running_text(
        data,
        model,
        AdamW(weight_decay=1e-6, betas=NO_MOMENTUM),
        peak=5e-3,
        warmup=200,
        clip=0.25,
        objective=objective,
    )
    return system.override(["training.averaging.ema=0.999"])


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
