"""Transformer-XL: attention that reaches into the segment before (Dai et al. 2019)."""

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.mixers.attention import SelfAttentionSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.models.decoder import DecoderSpec
from regard.models.language_model import LanguageModelSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.norms import LayerNormSpec
from regard.parts.positions import DistanceSpec
from regard.recipes.running_text import running_text
from regard.recipes.system import SystemSpec
from regard.stacks.join import PreNormSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.training.optimisation import Muon


def transformer_xl() -> SystemSpec:
    """6 layers, 256 wide, 8 heads; windows of 64 tokens from which one looks 128 back."""
    data = TextSpec(
        tokenizer=TokenizerSpec(unit="byte_bpe", size=10_000), order="running", window=64, rows=32
    )
    attention = SelfAttentionSpec(heads=8, positions=DistanceSpec(), radius=128, carries="inputs")
    block = BlockSpec(
        mixers=(attention, PointwiseSpec(hidden=1024, activation="gelu_tanh")),
        join=PreNormSpec(dropout=0.1),
        repeat=6,
    )
    model = LanguageModelSpec(
        decoder=DecoderSpec(
            embedding=EmbeddingSpec(width=256, scale=True, dropout=0.1),
            stack=StackSpec(blocks=(block,), final_norm=LayerNormSpec()),
        )
    )
    return running_text(data, model, Muon(), peak=2e-3, warmup=300)
