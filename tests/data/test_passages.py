"""Hidden tokens and passages two by two: shares, laws of what is asked, and nothing random but the key."""

import numpy as np
import pytest
import torch

from regard.core.errors import UsageError
from regard.data.hiding import HidingSpec
from regard.data.passages import PassageBatch, PassagesSpec, PreparedPassages, begins_word
from regard.data.randomness import keyed
from regard.data.relations import FollowingSpec, OrderSpec, RelationSpec
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


DOCUMENTS = [
    " ".join(f"{name}{n % 10}" for n in range(40 + 7 * number)) for number, name in enumerate("abcdefg")
]


def paired(relation: RelationSpec, texts: list[str] = DOCUMENTS, **fields: object) -> PreparedPassages:
    spec = PassagesSpec(
        tokenizer=TokenizerSpec(unit="blank", size=200, hides=True),
        window=19,
        rows=8,
        relation=relation,
        **fields,
    )
    return spec.prepare(texts, texts[:1], 3, None, None)


def rows_of(data: PreparedPassages, epochs: int) -> list[tuple[list[str], list[str], int]]:
    """The two passages of every row, as words and with nothing hidden, and the label."""
    tokenizer, found = data.lexicon["text"], []
    for number in range(epochs):
        for batch in data.epoch(number):
            segments, follows = batch.tokens.segments, batch.follows
            assert segments is not None
            assert follows is not None
            for row in range(len(batch.rows)):
                at = batch.places.at[row][batch.places.real[row]]
                ids = batch.tokens.ids[row].clone()
                ids[at] = batch.wanted[row][batch.places.real[row]]
                real = batch.tokens.real[row]
                first, second = (ids[real & (segments[row] == side)].tolist() for side in (0, 1))
                assert first[0] == tokenizer.begin
                assert first[-1] == second[-1] == tokenizer.end
                assert tokenizer.end not in (*first[1:-1], *second[:-1])
                assert not segments[row][~real].any()
                words = (tokenizer.pieces(ids) for ids in (first[1:-1], second[:-1]))
                found.append((*words, int(follows[row, 0])))
    return found


def goes_on(one: list[str], other: list[str]) -> bool:
    """Whether the other begins, in the same document, where the one ends; words count 0 to 9."""
    return one[-1][0] == other[0][0] and (int(one[-1][1]) + 1) % 10 == int(other[0][1])


def test_half_of_the_second_passages_follow_and_the_others_are_of_other_documents() -> None:
    rows = rows_of(paired(FollowingSpec()), 20)
    assert 0.45 < np.mean([label for *_, label in rows]) < 0.55
    for first, second, label in rows:
        assert len({word[0] for word in first}) == len({word[0] for word in second}) == 1
        assert goes_on(first, second) if label else first[0][0] != second[0][0]
        assert len(first) + len(second) <= 16
    elsewhere = {(first[0][0], second[0][0]) for first, second, label in rows if not label}
    assert len(elsewhere) == len(DOCUMENTS) * (len(DOCUMENTS) - 1)


def test_of_a_single_document_the_second_passage_is_from_another_place() -> None:
    text = [" ".join(f"w{n}" for n in range(120))]
    for first, second, label in rows_of(paired(FollowingSpec(), text), 10):
        begins, ends = int(second[0][1:]), int(first[-1][1:])
        assert (begins == ends + 1) == bool(label)
        assert not set(first) & set(second)


def test_the_order_of_passages_that_follow_one_another_is_changed_in_half_of_the_rows() -> None:
    rows = rows_of(paired(OrderSpec()), 20)
    assert 0.45 < np.mean([label for *_, label in rows]) < 0.55
    for first, second, label in rows:
        assert goes_on(first, second) if label else goes_on(second, first)


def test_some_rows_are_short() -> None:
    lengths = [len(one) + len(two) for one, two, _ in rows_of(paired(OrderSpec(), short=0.5), 20)]
    plain = [len(one) + len(two) for one, two, _ in rows_of(paired(OrderSpec()), 20)]
    # Ends of documents are short anyway.
    assert np.mean(np.array(plain) == 16) > 0.6
    assert 0.25 < np.mean(np.array(lengths) == 16) < 0.55
    assert {*range(4, 17)} == set(lengths)


def test_every_token_is_in_a_row() -> None:
    """Up to the few tokens in front of the first row of a document."""
    (data,) = [paired(OrderSpec())]
    seen = sum(len(one) + len(two) for one, two, _ in rows_of(data, 1))
    total = sum(len(text.split()) for text in DOCUMENTS)
    assert total - 16 * len(DOCUMENTS) < seen <= total
    assert data.epoch(0).padding_share < 0.1


def test_an_epoch_hides_other_tokens_but_always_the_same_ones() -> None:
    one, two = prepared(), prepared()
    assert torch.equal(one.epoch(2)[1].tokens.ids, two.epoch(2)[1].tokens.ids)
    places = [batch.places.at.tolist() for batch in one.epoch(2)]
    assert places != [batch.places.at.tolist() for batch in one.epoch(3)]
    for first, second in zip(one.validation(), two.validation(), strict=True):
        assert torch.equal(first.tokens.ids, second.tokens.ids)


@pytest.mark.parametrize("relation", [None, FollowingSpec()])
def test_a_batch_in_parts_is_the_batch(relation: RelationSpec | None) -> None:
    tokenizer = TokenizerSpec(unit="character", size=60, hides=True)
    spec = PassagesSpec(tokenizer=tokenizer, window=128, rows=16, relation=relation)
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
