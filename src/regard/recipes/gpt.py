"""GPT: a decoder of attention alone (Radford et al. 2018, 2019), in four sizes."""

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.mixers.attention import SelfAttentionSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.models.decoder import DecoderSpec
from regard.models.language_model import LanguageModelSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.norms import LayerNormSpec
from regard.parts.positions import LearnedSpec
from regard.recipes.running_text import running_text
from regard.recipes.system import SystemSpec
from regard.stacks.join import JoinSpec, PostNormSpec, PreNormSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.training.optimisation import AdamW, Muon


def gpt_tiny() -> SystemSpec:
    """4 layers, 128 wide, 4 heads, over characters in windows of 64."""
    data = TextSpec(tokenizer=TokenizerSpec(unit="character", size=1000), window=64, rows=12)
    model = gpt_model(layers=4, width=128, heads=4, positions=64, dropout=0.0)
    return running_text(data, model, Muon(), peak=4e-3, warmup=100)


def gpt() -> SystemSpec:
    """6 layers, 256 wide, 8 heads, over 10,000 byte-level subwords in windows of 128."""
    data = TextSpec(tokenizer=TokenizerSpec(unit="byte_bpe", size=10_000), window=128, rows=16)
    model = gpt_model(layers=6, width=256, heads=8, positions=128, dropout=0.1)
    return running_text(data, model, Muon(), peak=2e-3, warmup=300)


def gpt_original() -> SystemSpec:
    """12 layers, 768 wide, 12 heads, post-norm, 40,000 merges (Radford et al. 2018 §4.1)."""
    data = TextSpec(tokenizer=TokenizerSpec(unit="bpe", size=40_478), window=512, rows=64)
    model = gpt_model(12, 768, heads=12, positions=512, dropout=0.1, attention_dropout=0.1, pre_norm=False)
    return running_text(data, model, AdamW(weight_decay=0.01, betas=(0.9, 0.999)), peak=2.5e-4, warmup=2000)


def gpt2_small() -> SystemSpec:
    """12 layers, 768 wide, 12 heads, pre-norm, 1,024 positions (Radford et al. 2019 table 2)."""
    data = TextSpec(tokenizer=TokenizerSpec(unit="byte_bpe", size=50_257), window=1024, rows=8)
    model = gpt_model(12, 768, heads=12, positions=1024, dropout=0.1, attention_dropout=0.1)
    return running_text(data, model, AdamW(weight_decay=0.1, betas=(0.9, 0.95)), peak=6e-4, warmup=700)


def gpt_model(
    layers: int,
    width: int,
    heads: int,
    positions: int,
    dropout: float,
    attention_dropout: float = 0.0,
    pre_norm: bool = True,
) -> LanguageModelSpec:
    join: JoinSpec = PreNormSpec(dropout=dropout) if pre_norm else PostNormSpec(dropout=dropout)
    block = BlockSpec(
        mixers=(
            SelfAttentionSpec(heads=heads, dropout=attention_dropout),
            PointwiseSpec(hidden=4 * width, activation="gelu_tanh"),
        ),
        join=join,
        repeat=layers,
    )
    return LanguageModelSpec(
        decoder=DecoderSpec(
            embedding=EmbeddingSpec(width=width, positions=LearnedSpec(longest=positions), dropout=dropout),
            stack=StackSpec(blocks=(block,), final_norm=LayerNormSpec() if pre_norm else None),
        )
    )
