"""Counting n-grams, against dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import DataError
from regard.parts.ngram_counts import NgramCounts, count_ngrams
from tests.parts.documents import BEGIN, END, PADDING, Gram, corpora, counted, flat

VOCABULARY = 9


def count(documents: list[list[int]], order: int, vocabulary: int = VOCABULARY) -> NgramCounts:
    return count_ngrams(*flat(documents), order, vocabulary, BEGIN, PADDING)


def spelt(counts: NgramCounts) -> list[list[Gram]]:
    """The n-grams of every order, in the order of their tables."""
    tables: list[list[Gram]] = [[()]]
    for grams in counts.orders:
        words = grams.keys % counts.vocabulary
        tables.append(
            [(*tables[-1][c], int(w)) for c, w in zip(grams.contexts.tolist(), words.tolist(), strict=True)]
        )
    return tables[1:]


@given(documents=corpora(VOCABULARY), order=st.integers(1, 5))
def test_counts_are_those_of_a_dictionary(documents: list[list[int]], order: int) -> None:
    counts, expected = count(documents, order), counted(documents, order)
    for n, (grams, names) in enumerate(zip(counts.orders, spelt(counts), strict=True), start=1):
        found = {name: c for name, c in zip(names, grams.counts.tolist(), strict=True) if c}
        assert found == expected[n]
        assert (np.diff(grams.keys) > 0).all()


@given(documents=corpora(VOCABULARY), order=st.integers(2, 5))
def test_endings_and_beginnings_name_what_they_say(documents: list[list[int]], order: int) -> None:
    counts = count(documents, order)
    tables = spelt(counts)
    for n in range(1, order):
        grams = counts.orders[n]
        assert [tables[n - 1][i] for i in grams.endings.tolist()] == [gram[1:] for gram in tables[n]]
        assert grams.initial.tolist() == [gram[0] == BEGIN for gram in tables[n]]
        assert grams.contexts_below == len(tables[n - 1])


def test_nothing_reaches_over_the_end_of_a_document() -> None:
    counts = count([[4, 5, END], [6, END], [END]], 3)
    assert spelt(counts)[2] == [(BEGIN, 4, 5), (BEGIN, 6, END), (4, 5, END)]
    assert spelt(counts)[1] == [(BEGIN, END), (BEGIN, 4), (BEGIN, 6), (4, 5), (5, END), (6, END)]


def test_numbers_beyond_32_bits() -> None:
    """Key of the last bigram: about 2⁴⁰."""
    vocabulary = 1_000_000
    grams = count([[vocabulary - 1, vocabulary - 2, END]] * 2, 2, vocabulary).orders[1]
    assert grams.keys[-1] == (vocabulary - 1) * vocabulary + vocabulary - 2
    assert grams.counts.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "not one token"),
        ([4, 9, END], "from 3 to 9 in a vocabulary of 9"),
        ([4, BEGIN, END], r"begin token \(id 2\)"),
        ([4, PADDING, END], r"padding \(id 0\)"),
    ],
)
def test_documents_that_cannot_be_counted(document: list[int], said: str) -> None:
    with pytest.raises(DataError, match=said):
        count([document], 2)
