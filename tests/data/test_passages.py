"""Hidden tokens and passages two by two: shares, laws of what is asked, and nothing random but the key."""

import numpy as np
import pytest
import torch

from regard.core.errors import UsageError
from regard.data.hiding import HidingSpec
from regard.data.passages import PassageBatch, PassagesSpec, PreparedPassages, begins_word
from regard.data.randomness import keyed
from regard.data.tokenizers import Tokenizer, TokenizerSpec

TEXT = [" ".join(f"{chr(97 + n % 7)}{chr(97 + n % 5)}{chr(97 + n % 3)}" for n in range(2000))]
MARK, OTHERS = 4, np.arange(5, 60)


def prepared(**fields: object) -> PreparedPassages:
    tokenizer = TokenizerSpec(unit="character", size=60, hides=True)
    return PassagesSpec(tokenizer=tokenizer, window=24, rows=8, **fields).prepare(TEXT, TEXT, 3, None, None)


def hidden_in(batch: PassageBatch) -> list[list[int]]:
    return [row[real].tolist() for row, real in zip(batch.wanted, batch.places.real, strict=True)]


def hide(spec: HidingSpec, rows: int, time: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    random = keyed(7)
    ids = random.integers(5, 60, (rows, time))
    free = np.ones_like(ids, dtype=bool)
    free[:, [0, -1]] = False
    begins = random.random(ids.shape) < 0.4
    hidden = spec.hide(ids, free, begins, MARK, OTHERS, random)
    return ids, hidden.shown, hidden.asked, begins


def test_shares_are_as_asked_for() -> None:
    ids, shown, asked, _ = hide(HidingSpec(), 2000, 102)
    assert (asked.sum(1) == 15).all()
    assert not asked[:, [0, -1]].any()
    assert (shown == ids)[~asked].all()
    masked, same = (shown == MARK)[asked].mean(), (shown == ids)[asked].mean()
    assert masked == pytest.approx(0.8, abs=0.01)
    # One in as many as there are tokens is drawn by chance itself.
    assert same == pytest.approx(0.1 + 0.1 / len(OTHERS), abs=0.01)


def test_every_place_is_as_likely_as_any_other() -> None:
    *_, asked, _ = hide(HidingSpec(), 8000, 42)
    assert asked[:, 1:-1].mean(0) == pytest.approx(0.15, abs=0.02)


def test_short_rows_have_something_to_guess() -> None:
    *_, asked, _ = hide(HidingSpec(share=0.01), 50, 6)
    assert (asked.sum(1) == 1).all()


def test_whole_words_are_hidden_whole() -> None:
    _, _, asked, begins = hide(HidingSpec(whole_words=True, share=0.3), 200, 40)
    inside = ~begins[:, 2:-1]
    assert (asked[:, 2:-1] == asked[:, 1:-2])[inside].all()
    assert 0.3 <= asked[:, 1:-1].mean() < 0.4


def test_rows_have_marks_and_places_tell_what_was_there() -> None:
    data = prepared()
    tokenizer, stream = data.lexicon["text"], data._text.stream
    for batch in data.epoch(0):
        ids = batch.tokens.ids.clone()
        assert ids.shape[1] == 24
        assert (ids[:, 0] == tokenizer.begin).all()
        assert (ids[:, -1] == tokenizer.end).all()
        ids[torch.arange(len(ids))[:, None], batch.places.at] = torch.where(
            batch.places.real, batch.wanted, ids.gather(1, batch.places.at)
        )
        for row, start in zip(ids, batch.rows, strict=True):
            assert row[1:-1].tolist() == stream[start : start + 22].tolist()


def test_half_of_the_second_passages_follow() -> None:
    data = prepared(pairs=True)
    stream, end, labels = data._text.stream, data.lexicon["text"].end, []
    for number in range(3):
        for batch in data.epoch(number):
            assert batch.follows is not None
            assert batch.tokens.segments is not None
            ids = batch.tokens.ids.clone().scatter_(1, batch.places.at, batch.wanted)
            for row, segments, start, follows in zip(
                ids, batch.tokens.segments, batch.rows, batch.follows[:, 0], strict=True
            ):
                first = int((segments == 0).sum()) - 2
                assert int(row[first + 1]) == end
                assert row[1 : first + 1].tolist() == stream[start : start + first].tolist()
                second = stream[start + first : start + 21].tolist()
                if follows:
                    assert row[first + 2 : -1].tolist() == second
                labels.append(int(follows))
    assert 0.4 < np.mean(labels) < 0.6


def test_an_epoch_hides_other_tokens_but_always_the_same_ones() -> None:
    one, two = prepared(), prepared()
    assert torch.equal(one.epoch(2)[1].tokens.ids, two.epoch(2)[1].tokens.ids)
    places = [batch.places.at.tolist() for batch in one.epoch(2)]
    assert places != [batch.places.at.tolist() for batch in one.epoch(3)]
    for first, second in zip(one.validation(), two.validation(), strict=True):
        assert torch.equal(first.tokens.ids, second.tokens.ids)


@pytest.mark.parametrize("pairs", [False, True])
def test_a_batch_in_parts_is_the_batch(pairs: bool) -> None:
    tokenizer = TokenizerSpec(unit="character", size=60, hides=True)
    spec = PassagesSpec(tokenizer=tokenizer, window=128, rows=16, pairs=pairs)
    whole = spec.prepare(TEXT, TEXT, 3, None, None).epoch(0)[0]
    parts = whole.split(2)
    assert len(parts) == 2
    assert torch.equal(torch.cat([part.tokens.ids for part in parts]), whole.tokens.ids)
    assert [row for part in parts for row in hidden_in(part)] == hidden_in(whole)


def test_words_begin_where_pieces_say_so() -> None:
    for unit in ("wordpiece", "bpe", "byte_bpe"):
        tokenizer = Tokenizer.train(
            TokenizerSpec(unit=unit, size=300, hides=True), ["unbelievable things happen, often"] * 3
        )
        text = "unbelievably thin, often"
        begins = begins_word(tokenizer)[tokenizer.encode(text)]
        # A comma begins a piece of its own only where punctuation is a word.
        assert begins.sum() == (4 if unit == "wordpiece" else 3), unit


def test_too_little_text_and_a_vocabulary_without_a_mark_are_told() -> None:
    tokenizer = TokenizerSpec(unit="character", size=60, hides=True)
    short = PassagesSpec(tokenizer=tokenizer, window=128).prepare(["abc"], ["abc"], 1, None, None)
    with pytest.raises(UsageError, match=r"a text of \d+ tokens, but a row takes 126"):
        short.epoch(0)
    with pytest.raises(ValueError, match="hides=true"):
        PassagesSpec(tokenizer=TokenizerSpec(unit="character"))
