"""Letters of tokens: of a vocabulary's words, of words it does not know, of rows with marks."""

import numpy as np
import pytest
import torch

from regard.data.labelled import LabelledSpec
from regard.data.layouts import LayoutSpec
from regard.data.letters import Letters, words_of
from regard.data.text import TextSpec
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.parts.spelling import spelled

TEXTS = ["the sea , the sky", "we see it"]


@pytest.fixture(params=["word", "blank"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.train(TokenizerSpec(unit=request.param, size=50), TEXTS)


def test_tokens_are_spelled_as_their_words_and_marks_as_nothing(tokenizer: Tokenizer) -> None:
    ids = np.array([[tokenizer.end, *tokenizer.encode("the sea")]])
    found = Letters(tokenizer).of(ids)
    assert torch.equal(found[0], torch.from_numpy(spelled(["", "the", "sea"])))
    assert Letters(tokenizer).of(np.zeros((2, 0), dtype=int)).shape[:2] == (2, 0)


def test_words_that_are_not_known_are_spelled_as_they_stand(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("unheard")[0] == tokenizer.unknown
    assert words_of(tokenizer, "the unheard  sea") == ["the", "unheard", "sea"]
    folded = Tokenizer.train(TokenizerSpec(unit="word", size=50, lowercase=True), TEXTS)
    assert words_of(folded, "The SEA, it") == ["the", "sea", ",", "it"]


@pytest.mark.parametrize("longest", [20, 7, 6])
@pytest.mark.parametrize("layout", [LayoutSpec(), LayoutSpec(begin=False), LayoutSpec(between=2)])
def test_rows_of_letters_are_laid_as_rows_of_tokens(layout: LayoutSpec, longest: int) -> None:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="word", size=50), TEXTS)
    spec = LabelledSpec(
        texts=2, tokenizer=TokenizerSpec(unit="word"), letters=True, layout=layout, longest=longest
    )
    (reading,) = spec.readings(tokenizer, ["the sea , the sky\twe see it"])
    assert len(reading.words) == len(reading.ids)
    marks = (tokenizer.begin, tokenizer.end)
    for token, word in zip(reading.ids, reading.words, strict=True):
        assert word == ("" if token in marks else tokenizer.pieces([token])[0])


def test_batches_of_text_bear_their_letters_in_parts_too() -> None:
    spec = TextSpec(tokenizer=TokenizerSpec(unit="word", size=50), letters=True, window=64, rows=8)
    data = spec.prepare(TEXTS * 80, TEXTS * 3, 1, None, None)
    whole = data.epoch(0)[0]
    letters = whole.given.letters
    assert letters is not None
    words = data.lexicon["text"].pieces(whole.given.ids[0].tolist())
    expected = spelled(["" if word == "</s>" else word for word in words])
    assert torch.equal(letters[0, :, : expected.shape[1]], torch.from_numpy(expected))
    parts = whole.split(2)
    assert len(parts) == 2
    assert torch.equal(torch.cat([part.given.letters for part in parts]), letters)
    assert data.validation()[0].given.letters is not None


def test_letters_of_pieces_of_words_are_refused() -> None:
    for spec in (TextSpec, LabelledSpec):
        with pytest.raises(ValueError, match="unit='bpe' cuts words"):
            spec(tokenizer=TokenizerSpec(unit="bpe"), letters=True)
