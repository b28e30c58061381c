"""Convolutional sequence to sequence learning (Gehring et al. 2017)."""

from regard.mixers.attention import MemoryAttentionSpec
from regard.mixers.convolution import ConvolutionSpec
from regard.models.decoder import DecoderSpec
from regard.models.encoder import EncoderSpec
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.positions import LearnedSpec
from regard.parts.scores import DotSpec
from regard.recipes.system import SystemSpec
from regard.recipes.translation import translation
from regard.stacks.join import HalvedSpec
from regard.stacks.stack import BlockSpec, StackSpec


def convs2s() -> SystemSpec:
    """4+4 layers of gated convolution, 256 wide; every decoder layer attends with one unscaled head."""
    embedding = EmbeddingSpec(width=256, positions=LearnedSpec(longest=512), dropout=0.2)
    join = HalvedSpec(dropout=0.2)
    encoder = BlockSpec(mixers=(ConvolutionSpec(kernel=3),), join=join, repeat=4)
    decoder = BlockSpec(
        mixers=(ConvolutionSpec(kernel=3, causal=True), MemoryAttentionSpec(heads=1, score=DotSpec())),
        join=join,
        repeat=4,
    )
    model = SequenceToSequenceSpec(
        encoder=EncoderSpec(embedding=embedding, stack=StackSpec(blocks=(encoder,))),
        decoder=DecoderSpec(embedding=embedding, stack=StackSpec(blocks=(decoder,))),
        tie="all",
    )
    return translation(model, peak=2e-3, warmup=200)
