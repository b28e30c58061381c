"""Words from their two sides: by the formula, whatever windows a text is read in, and known or not."""

import pytest
import torch

from regard.core.errors import DataError
from regard.core.sequences import Tokens
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.models.two_way import TwoWayModel
from regard.parts.spelling import spelled
from regard.recipes.elmo import two_way_model
from regard.tasks.task import Asked
from regard.tasks.two_sided import TwoSided, TwoSidedSpec

TEXT = "the sea , the sky , we see the sea and the sky again"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TokenizerSpec(unit="word", size=50), [TEXT])


def task(tokenizer: Tokenizer, best: int = 3, **fields: int) -> TwoSided:
    torch.manual_seed(1)
    model: TwoWayModel = two_way_model(width=6, held=10, filters=(3, 4)).build({"text": tokenizer.size})
    return TwoSided(model.eval(), tokenizer, torch.device("cpu"), best, TwoSidedSpec(**fields))


def ways(asked: TwoSided, words: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    known = asked.tokenizer.vocabulary()
    end, unknown = asked.tokenizer.end, asked.tokenizer.unknown
    ids = torch.tensor([[known.get(f"▁{word}", unknown) if word else end for word in words]])
    letters = torch.from_numpy(spelled(words))[None]
    model = asked.model
    with torch.no_grad():
        forward, backward = model.ways(model.read(Tokens.whole(ids)._replace(letters=letters)))
        return model.log_probs(forward[0]), model.log_probs(backward[0])


def test_a_blank_is_filled_by_the_product_of_both_sides(tokenizer: Tokenizer) -> None:
    asked = task(tokenizer)
    (answer,) = asked.answer(Asked(["the sea ___ sky unheard"]))
    seen, _ = ways(asked, ["", "the", "sea"])
    _, foreseen = ways(asked, ["sky", "unheard", ""])
    both = (seen[-1] + foreseen[0]).softmax(-1)
    values, tokens = both.topk(3)
    assert [candidate.log_prob for candidate in answer.candidates] == pytest.approx(values.log().tolist())
    assert [candidate.pieces[0] for candidate in answer.candidates] == tokenizer.pieces(tokens.tolist())
    assert asked.shown("the sea ___ sky", "and") == "the sea and sky"


def test_without_a_blank_the_next_word_is_asked_for(tokenizer: Tokenizer) -> None:
    asked = task(tokenizer)
    (answer,) = asked.answer(Asked(["the sea"]))
    seen, _ = ways(asked, ["", "the", "sea"])
    assert answer.candidates[0].log_prob == pytest.approx(float(seen[-1].max()), abs=1e-5)
    with pytest.raises(DataError, match="expected one ___ to fill, found 2"):
        asked.answer(Asked(["___ and ___"]))


def test_no_word_is_unknown(tokenizer: Tokenizer) -> None:
    """Two words that the vocabulary does not have are told apart by their letters."""
    asked = task(tokenizer)
    one, other = asked.answer(Asked(["the seagull ___", "the skylark ___"]))
    assert one.candidates[0].log_prob != pytest.approx(other.candidates[0].log_prob, abs=1e-7)


def test_scores_are_those_of_each_word_given_all_others(tokenizer: Tokenizer) -> None:
    asked, words = task(tokenizer), TEXT.split()
    (scored,) = asked.score([(TEXT,)])
    seen, foreseen = ways(asked, ["", *words, ""])
    expected = []
    for place, token in enumerate(tokenizer.encode(TEXT), start=1):
        both = (seen[place - 1] + foreseen[place + 1]).log_softmax(-1)
        expected.append(float(both[token]))
    assert scored.token_log_probs == pytest.approx(expected, abs=1e-5)


def test_every_token_is_judged_once_whatever_the_windows(tokenizer: Tokenizer) -> None:
    whole = task(tokenizer, window=64, context=20)
    for window, context in ((8, 2), (5, 2), (9, 0)):
        asked = task(tokenizer, window=window, context=context)
        spans = list(asked._windows(16))
        assert [place for _, first, last, _ in spans for place in range(first, last)] == list(range(1, 15))
        assert all(end - begin <= window + 2 for begin, _, _, end in spans)
    # All that is seen is in the window.
    near, far = task(tokenizer, window=50, context=14).evaluate([(TEXT,)]), whole.evaluate([(TEXT,)])
    assert near.scores == pytest.approx(far.scores, rel=1e-5)
    assert far.scores["perplexity"] ** 2 == pytest.approx(
        far.scores["forward_perplexity"] * far.scores["backward_perplexity"], rel=1e-5
    )
    assert "tokens:14" in far.signature
