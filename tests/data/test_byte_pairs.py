"""Merges by hand, and dropout against the definition."""

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.byte_pairs import DroppingWord, Merge, apply_merges, join_pair, merge_steps
from regard.data.randomness import Drops

LECTURE = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def test_the_lectures_corpus_merges_as_worked_by_hand() -> None:
    """Sennrich et al. 2016, section 3.2: e s, es t, est </w>, then l o, lo w (7 times each), n e (6), …"""
    steps = merge_steps(LECTURE, 6)
    assert [(step.pair, step.frequency) for step in steps] == [
        (("e", "s"), 9),
        (("es", "t"), 9),
        (("est", "</w>"), 9),
        (("l", "o"), 7),
        (("lo", "w"), 7),
        (("n", "e"), 6),
    ]
    assert steps[0].words == {
        ("l", "o", "w", "</w>"): 5,
        ("l", "o", "w", "e", "r", "</w>"): 2,
        ("n", "e", "w", "es", "t", "</w>"): 6,
        ("w", "i", "d", "es", "t", "</w>"): 3,
    }
    assert list(steps[-1].words) == [
        ("low", "</w>"),
        ("low", "e", "r", "</w>"),
        ("ne", "w", "est</w>"),
        ("w", "i", "d", "est</w>"),
    ]


def test_learning_ends_when_every_word_is_one_symbol() -> None:
    steps = merge_steps({"ab": 1, "b": 2}, 100)
    assert set(steps[-1].words) == {("ab</w>",), ("b</w>",)}


def test_a_word_without_the_end_symbol_keeps_its_parts_free() -> None:
    assert merge_steps({"aa": 3}, 5, end="e")[0].pair == ("a", "a")


@pytest.mark.parametrize(
    ("symbols", "joined"),
    [("aaa", ("aa", "a")), ("aaaa", ("aa", "aa")), ("baab", ("b", "aa", "b")), ("", ())],
)
def test_pairs_join_from_left_to_right(symbols: str, joined: tuple[str, ...]) -> None:
    assert join_pair(tuple(symbols), ("a", "a")) == joined


# Pieces 0 1 2 3 are letters; 0 1 → 4, 2 3 → 5, 4 5 → 6, and 1 2 → 7 competes with the first two.
TABLE = {
    (0, 1): Merge(1, 4),
    (2, 3): Merge(2, 5),
    (4, 5): Merge(3, 6),
    (1, 2): Merge(0, 7),
    (7, 3): Merge(4, 8),
}


def distribution(pieces: tuple[int, ...], share: float) -> Counter[tuple[int, ...]]:
    """Provilkov et al., algorithm 1, worked out: every candidate is dropped independently, each step."""
    candidates = [
        (merge.rank, place, merge.piece)
        for place, pair in enumerate(pairwise(pieces))
        if (merge := TABLE.get(pair)) is not None
    ]
    total: Counter[tuple[int, ...]] = Counter()
    for size in range(len(candidates) + 1):
        for kept in combinations(candidates, size):
            chance = (1 - share) ** size * share ** (len(candidates) - size)
            if not kept:
                total[pieces] += chance  # type: ignore[assignment]
                continue
            _, place, piece = min(kept)
            for outcome, inner in distribution((*pieces[:place], piece, *pieces[place + 2 :]), share).items():
                total[outcome] += chance * inner  # type: ignore[assignment]
    return total


@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_dropout_has_the_distribution_of_its_definition(share: float) -> None:
    word, draws = DroppingWord((0, 1, 2, 3), TABLE), 6_000
    seen = Counter(tuple(word.merge(TABLE, Drops(share, 11, line))) for line in range(draws))
    expected = distribution((0, 1, 2, 3), share)
    assert set(seen) <= set(expected)
    for outcome, chance in expected.items():
        assert seen[outcome] / draws == pytest.approx(chance, abs=0.02)


@given(
    letters=st.lists(st.integers(0, 3), max_size=30),
    share=st.sampled_from([0.0, 0.05, 0.3, 0.9, 1.0]),
    key=st.integers(0, 2**70),
)
def test_remembered_outcomes_equal_working_them_out(letters: list[int], share: float, key: int) -> None:
    """A stream of answers gives the same pieces, and is left at the same place, either way."""
    remembered, plain = Drops(share, key), Drops(share, key)
    word = DroppingWord(letters, TABLE)
    for _ in range(5):
        assert list(word.merge(TABLE, remembered)) == apply_merges(letters, TABLE, plain)
        assert remembered.gap == plain.gap


def test_the_share_of_drops_is_the_share_asked_for() -> None:
    drops = Drops(0.2, 5, 3, 8)
    found = [next(drops) for _ in range(20_000)]
    assert sum(found) / len(found) == pytest.approx(0.2, abs=0.01)
    together = sum(a and b for a, b in pairwise(found)) / len(found)
    assert together == pytest.approx(0.04, abs=0.006)


def test_streams_of_different_keys_differ_and_of_equal_keys_do_not() -> None:
    def taken(*key: int) -> list[bool]:
        drops = Drops(0.5, *key)
        return [next(drops) for _ in range(64)]

    assert taken(1, 2, 3) == taken(1, 2, 3)
    different = {
        tuple(taken(*key)) for key in [(1, 2, 3), (1, 3, 2), (2, 1, 3), (1, 2, 4), (0, 2, 3), (1, 0, 3)]
    }
    assert len(different) == 6


def test_share_zero_never_drops_and_one_always_does() -> None:
    never, always = Drops(0.0, 1), Drops(1.0, 1)
    for _, drop, kept in zip(range(1000), always, never, strict=False):
        assert drop
        assert not kept
    assert apply_merges((0, 1, 2, 3), TABLE, Drops(1.0, 2)) == [0, 1, 2, 3]
