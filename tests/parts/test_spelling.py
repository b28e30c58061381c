"""Words by their letters: against a plain convolution, and whatever stands around a word means nothing."""

import pytest
import torch
from torch import nn

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.filters import Filters
from regard.parts.spelling import Spelling, SpellingSpec, spelled

WORDS = ["a", "Haus", "Häuser", "", "antidisestablishmentarianism", "日本"]


def build(**fields: object) -> Spelling:
    torch.manual_seed(0)
    return SpellingSpec(**fields).build().double().eval()


def test_letters_are_bytes_between_marks() -> None:
    assert spelled(["é", "a"]).tolist() == [[1, 0xC3 + 3, 0xA9 + 3, 2], [1, ord("a") + 3, 2, 0]]
    assert spelled(["abcdef"], longest=5).tolist() == [[1, *(ord(c) + 3 for c in "abc"), 2]]


def test_a_word_alone_is_the_word_in_company() -> None:
    part = build(filters=(Filters(width=2, count=200), Filters(width=5, count=200)), highways=1, width=6)
    together = part(torch.from_numpy(spelled(WORDS)))
    for word, expected in zip(WORDS, together, strict=True):
        torch.testing.assert_close(part(torch.from_numpy(spelled([word])))[0], expected)
    assert together.shape == (6, 6)


def test_filters_are_convolutions_with_a_maximum() -> None:
    part = build(filters=(Filters(width=3, count=400),))
    letters = torch.from_numpy(spelled(["Haus"]))
    look = part.filters[0]
    assert isinstance(look, nn.Conv1d)
    x = nn.functional.pad(part.letters.weight[letters], (0, 0, 2, 3)).transpose(1, 2)
    found = torch.tanh(nn.functional.conv1d(x, look.weight, look.bias)).amax(2)
    torch.testing.assert_close(part(letters), found)


def test_padding_has_no_letters_and_learns_none() -> None:
    part = build().train()
    part(torch.from_numpy(spelled(["a", "much longer"]))).square().sum().backward()
    assert not part.letters.weight[0].any()
    assert part.letters.weight.grad is not None
    assert not part.letters.weight.grad[0].any()
    assert part.letters.weight.grad[ord("a") + 3].any()


def test_an_embedding_is_the_tokens_own_vector_and_its_letters() -> None:
    spec = EmbeddingSpec(width=10, spelling=SpellingSpec(filters=(Filters(width=2, count=4),)))
    embedding = spec.build(9).eval()
    assert embedding.spelling is not None
    ids, letters = torch.tensor([[3, 5, 3]]), torch.from_numpy(spelled(["ab", "c", "de"]))[None]
    x = embedding(Tokens.whole(ids)._replace(letters=letters), torch.zeros(1, 3).long())
    torch.testing.assert_close(x[..., :6], embedding.tokens.weight[ids])
    torch.testing.assert_close(x[..., 6:], embedding.spelling(letters))
    with pytest.raises(UsageError, match="3 wide has no room for 4 values that are spelled"):
        EmbeddingSpec(width=3, spelling=SpellingSpec(filters=(Filters(width=2, count=4),))).build(9)


def test_an_embedding_may_be_spelled_as_a_whole() -> None:
    spec = EmbeddingSpec(width=4, spelling=SpellingSpec(filters=(Filters(width=2, count=4),)))
    embedding = spec.build(9).eval()
    assert embedding.spelling is not None
    letters = torch.from_numpy(spelled(["ab", "c", "ab"]))[None]
    x = embedding(Tokens.whole(torch.tensor([[3, 5, 8]]))._replace(letters=letters), torch.zeros(1, 3).long())
    torch.testing.assert_close(x, embedding.spelling(letters))
    assert not any("tokens" in name for name, p in embedding.named_parameters() if p.requires_grad)
