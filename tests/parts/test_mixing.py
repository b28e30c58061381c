"""Layers as one: by hand from the formula, with the weights a task learns."""

import math

import pytest
import torch

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.core.tape import Tape
from regard.mixers.recurrent import RecurrentSpec
from regard.models.encoder import EncoderSpec
from regard.parts.cells import LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.mixing import LayerMixSpec
from regard.stacks.stack import BlockSpec, StackSpec


def test_at_first_all_layers_weigh_the_same() -> None:
    layers = [torch.full((1, 2, 4), value) for value in (1.0, 2.0, 6.0)]
    torch.testing.assert_close(LayerMixSpec().build([4, 4, 4])(layers), torch.full((1, 2, 4), 3.0))


def test_the_sum_by_hand() -> None:
    """s = softmax(0, ln 3) = (1/4, 3/4); γ = 2: 2 (1/4 · 4 + 3/4 · 8) = 14."""
    mix = LayerMixSpec().build([2, 2])
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.0, math.log(3)]))
        mix.scale.fill_(2.0)
    with Tape(mix) as tape:
        mixed = mix([torch.full((1, 1, 2), 4.0), torch.full((1, 1, 2), 8.0)])
    assert mixed.flatten().tolist() == pytest.approx([14.0, 14.0])
    assert tape.records["shares"][0].tolist() == pytest.approx([0.25, 0.75])


def test_layers_are_brought_to_one_size_where_asked_for() -> None:
    mix = LayerMixSpec(norm=True).build([4, 4])
    x = torch.randn(3, 5, 4)
    torch.testing.assert_close(mix([x, 100 * x + 7]), mix([x, x]), atol=1e-3, rtol=1e-3)


def test_a_narrow_layer_stands_there_twice() -> None:
    narrow, wide = torch.randn(2, 3, 2), torch.zeros(2, 3, 4)
    mixed = LayerMixSpec().build([2, 4])([narrow, wide])
    torch.testing.assert_close(mixed, torch.cat((narrow, narrow), dim=-1) / 2)
    with pytest.raises(UsageError, match="the widest has 5 values, layer 0 has 2"):
        LayerMixSpec().build([2, 5])


def test_an_encoder_gives_the_mix_of_its_layers() -> None:
    torch.manual_seed(1)
    block = BlockSpec(mixers=(RecurrentSpec(cell=LongShortTermSpec(width=3), direction="both"),), repeat=2)
    spec = EncoderSpec(embedding=EmbeddingSpec(width=6), stack=StackSpec(blocks=(block,)), mix=LayerMixSpec())
    encoder = spec.build(9).eval()
    assert encoder.mix is not None
    tokens = Tokens.pad([[1, 2, 3], [4]], 0)
    layers = encoder.layers(tokens)
    assert len(layers) == 3
    torch.testing.assert_close(layers[0], encoder.embedding(tokens, torch.zeros(2, 3).long()))
    plain = spec.model_copy(update={"mix": None}).build(9).eval()
    plain.load_state_dict(encoder.state_dict(), strict=False)
    torch.testing.assert_close(plain(tokens).states, layers[-1])
    with torch.no_grad():
        encoder.mix.weights.copy_(torch.tensor([-100.0, -100.0, 0.0]))
    torch.testing.assert_close(encoder(tokens).states, layers[-1])
