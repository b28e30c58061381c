"""One text or two as one row: marks where they belong, cut where too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.layouts import LayoutSpec, shortened
from regard.data.tokenizers import Tokenizer, TokenizerSpec

TOKENIZER = Tokenizer.train(TokenizerSpec(unit="character", size=50), ["abcdefgh"])
BEGIN, END = TOKENIZER.begin, TOKENIZER.end


def test_marks_stand_around_and_between() -> None:
    assert LayoutSpec().lay(TOKENIZER, [[7, 8]], 10) == ([BEGIN, 7, 8, END], 4, [], 0, (), ())
    assert LayoutSpec().lay(TOKENIZER, [[7], [8, 9]], 10)[:2] == ([BEGIN, 7, END, 8, 9, END], 3)
    twice = LayoutSpec(between=2).lay(TOKENIZER, [[7], [8]], 10)
    assert twice[:2] == ([BEGIN, 7, END, END, 8, END], 4)
    assert LayoutSpec(begin=False).lay(TOKENIZER, [[7], [8]], 10)[:2] == ([7, END, 8, END], 2)


@given(
    st.lists(st.lists(st.integers(4, 9), max_size=12), min_size=1, max_size=2),
    st.integers(5, 20),
    st.booleans(),
    st.integers(1, 2),
)
def test_a_row_is_never_too_long_and_loses_no_more_than_it_must(
    texts: list[list[int]], longest: int, begin: bool, between: int
) -> None:
    spec = LayoutSpec(begin=begin, between=between)
    whole = sum(map(len, texts)) + begin + 1 + (between if len(texts) > 1 else 0)
    reading = spec.lay(TOKENIZER, texts, longest)
    assert len(reading.ids) == min(whole, longest)
    assert reading.cut == whole - len(reading.ids)
    assert reading.ids[-1] == END


@given(st.integers(0, 15), st.integers(0, 15), st.integers(0, 20))
def test_the_longest_text_is_cut_first(first: int, second: int, room: int) -> None:
    one, other = shortened([list(range(first)), list(range(second))], room)
    assert len(one) + len(other) == min(first + second, room)
    if len(one) < first and len(other) < second:
        assert abs(len(one) - len(other)) <= 1
    elif len(one) < first:
        assert len(one) >= len(other)
    elif len(other) < second:
        assert len(other) >= len(one)


@pytest.mark.parametrize("longest", [1, 2])
def test_no_room_at_all_is_no_crash(longest: int) -> None:
    assert LayoutSpec().lay(TOKENIZER, [[7], [8]], longest).cut == 2
