"""Embeddings: token + position + segment, scaled and normed in the right order."""

import math

import pytest
import torch
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.parts.embeddings import Embedding, EmbeddingSpec
from regard.parts.norms import LayerNormSpec, layer_norm
from regard.parts.positions import LearnedSpec, SinusoidalSpec
from regard.parts.spelling import SpellingSpec, spelled

VOCABULARY, WIDTH = 13, 6
IDS = torch.tensor([[3, 12, 0], [5, 5, 1]])
POSITION = torch.tensor([[0, 1, 2], [4, 5, 6]])
TOKENS = Tokens.whole(IDS)
SEGMENT = torch.tensor([[0, 0, 1], [1, 0, 1]])


def build(**fields: object) -> Embedding:
    torch.manual_seed(0)
    embedding = EmbeddingSpec(width=WIDTH, **fields).build(VOCABULARY).eval().double()
    for parameter in embedding.parameters():
        parameter.data = torch.randn_like(parameter)
    return embedding


def test_a_plain_embedding_is_a_row_of_the_table() -> None:
    embedding = build()
    assert torch.equal(embedding(TOKENS, POSITION), embedding.tokens.weight[IDS])
    assert torch.equal(embedding(TOKENS, POSITION + 50), embedding.tokens.weight[IDS])


def test_scale_multiplies_tokens_but_not_positions() -> None:
    embedding = build(scale=True, positions=LearnedSpec(longest=7))
    assert embedding.positions is not None
    expected = math.sqrt(WIDTH) * embedding.tokens.weight[IDS] + embedding.positions.table.weight[POSITION]
    torch.testing.assert_close(embedding(TOKENS, POSITION), expected)


def test_everything_at_once_in_order() -> None:
    embedding = build(scale=True, positions=SinusoidalSpec(), segments=2, norm=LayerNormSpec(epsilon=0.1))
    assert embedding.segments is not None
    assert embedding.norm is not None
    assert embedding.positions is not None
    total: Tensor = embedding.tokens.weight[IDS] * math.sqrt(WIDTH)
    total = total + embedding.positions(POSITION) + embedding.segments.weight[SEGMENT]
    expected = layer_norm(total, embedding.norm.weight, embedding.norm.bias, 0.1)
    torch.testing.assert_close(embedding(TOKENS._replace(segments=SEGMENT), POSITION), expected)


def test_letters_are_added_and_begin_as_nothing() -> None:
    letters = torch.from_numpy(spelled(["Ada", "met", "", "ada", "Ada", ""])).view(2, 3, -1)
    tokens = TOKENS._replace(letters=letters)
    spec = EmbeddingSpec(width=WIDTH, norm=LayerNormSpec(), letters=SpellingSpec())
    fresh = spec.build(VOCABULARY).eval()
    assert fresh.letters is not None
    assert fresh.norm is not None
    own = fresh.tokens.weight[IDS]
    torch.testing.assert_close(fresh(tokens, POSITION), fresh.norm(own))
    fresh(tokens, POSITION).square().mul(torch.arange(1.0, WIDTH + 1)).sum().backward()
    assert fresh.letters.lead.weight.grad is not None
    assert fresh.letters.lead.weight.grad.any()
    torch.nn.init.normal_(fresh.letters.lead.weight)
    added = fresh.letters(letters)
    torch.testing.assert_close(fresh(tokens, POSITION), fresh.norm(own + added))
    torch.testing.assert_close(added[0, 0], added[1, 1])
    assert not torch.allclose(added[0, 0], added[1, 0]), "a capital letter is another one"


def test_dropout_is_last_and_only_in_training() -> None:
    embedding = build(dropout=0.5, norm=LayerNormSpec())
    whole = embedding(TOKENS, POSITION)
    dropped = embedding.train()(TOKENS, POSITION)
    gone = dropped == 0
    assert gone.any()
    torch.testing.assert_close(dropped, (2 * whole).masked_fill(gone, 0))


def test_it_says_how_long_inputs_may_be() -> None:
    assert build().longest is None
    assert build(positions=SinusoidalSpec()).longest is None
    embedding = build(positions=LearnedSpec(longest=6))
    assert embedding.longest == 6
    with pytest.raises(UsageError, match="an input of 7 tokens, but this model has learned 6 positions"):
        embedding(TOKENS, POSITION)


def test_scaled_tokens_begin_about_as_large_as_sinusoids() -> None:
    """Coordinates of variance 1/width, so that tied logits begin of order one."""
    table = EmbeddingSpec(width=64).build(997).tokens.weight
    assert table.std().item() == pytest.approx(64**-0.5, rel=0.02)
