"""Smoothings against their formulas: hand values, fractions, and dictionaries."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.spec import Spec
from regard.parts.ngram_counts import NgramCounts, count_ngrams
from regard.parts.smoothing import (
    FALLBACK,
    AddSpec,
    KneserNeySpec,
    MaximumLikelihoodSpec,
    Smoothed,
    SmoothingSpec,
    discounts,
)
from tests.parts.documents import (
    BEGIN,
    END,
    PADDING,
    UNKNOWN,
    Gram,
    KneserNey,
    corpora,
    counted,
    flat,
    some_text,
)

VOCABULARY = 8
ALL: dict[str, SmoothingSpec] = {
    "maximum likelihood": MaximumLikelihoodSpec(),
    "add one": AddSpec(),
    "add a little": AddSpec(k=0.05),
    "kneser-ney": KneserNeySpec(),
}
every_smoothing = pytest.mark.parametrize("spec", ALL.values(), ids=ALL)


class Reader:
    """p(w | h) out of the tables, by the one formula and a dictionary of names."""

    def __init__(self, spec: SmoothingSpec, documents: list[list[int]], order: int) -> None:
        self.counts: NgramCounts = count_ngrams(*flat(documents), order, VOCABULARY, BEGIN, PADDING)
        self.smoothed: Smoothed = spec.build()(self.counts)
        self.places: list[dict[Gram, int]] = [{(w,): w for w in range(VOCABULARY)}]
        for grams in self.counts.orders[1:]:
            below = {place: name for name, place in self.places[-1].items()}
            names = [(*below[int(key) // VOCABULARY], int(key) % VOCABULARY) for key in grams.keys]
            self.places.append({name: place for place, name in enumerate(names)})

    def __call__(self, word: int, context: Gram = ()) -> float:
        if not context:
            return float(self.smoothed.words[word])
        shorter = self(word, context[1:])
        level, place = self.smoothed.levels[len(context) - 1], self.places[len(context) - 1].get(context)
        if place is None:
            return shorter
        seen = self.places[len(context)].get((*context, word))
        part = 0.0 if seen is None else float(level.parts[seen])
        floor = float(level.floors[place]) if word not in (PADDING, BEGIN) else 0.0
        return part + float(level.weights[place]) * shorter + floor


def contexts(order: int) -> list[Gram]:
    return [h for n in range(order) for h in product(range(VOCABULARY), repeat=n)]


@every_smoothing
@given(documents=corpora(VOCABULARY), order=st.integers(1, 3))
def test_probabilities_sum_to_one_after_seen_and_unseen_contexts(
    spec: SmoothingSpec, documents: list[list[int]], order: int
) -> None:
    p = Reader(spec, documents, order)
    for h in contexts(order):
        distribution = [p(w, h) for w in range(VOCABULARY)]
        assert sum(distribution) == pytest.approx(1, abs=1e-12)
        assert min(distribution) >= 0
        assert distribution[PADDING] == distribution[BEGIN] == 0


@given(documents=corpora(VOCABULARY), order=st.integers(1, 3))
def test_kneser_ney_is_what_dictionaries_say(documents: list[list[int]], order: int) -> None:
    p, expected = Reader(KneserNeySpec(), documents, order), KneserNey(documents, order, VOCABULARY)
    for h in contexts(order):
        for w in range(VOCABULARY):
            assert p(w, h) == pytest.approx(expected.probability(w, h), abs=1e-12)
            assert w in (PADDING, BEGIN) or p(w, h) > 0


@pytest.mark.parametrize("seed", range(3))
def test_kneser_ney_with_discounts_that_were_estimated(seed: int) -> None:
    documents = some_text(seed, VOCABULARY, documents=40)
    p, expected = Reader(KneserNeySpec(), documents, 3), KneserNey(documents, 3, VOCABULARY)
    assert sum(found != FALLBACK[1:] for found in expected.discount.values()) >= 1
    for h in contexts(3):
        for w in range(VOCABULARY):
            assert p(w, h) == pytest.approx(expected.probability(w, h), abs=1e-12)


@given(documents=corpora(VOCABULARY), k=st.sampled_from([0.01, 0.5, 1.0, 3.0]))
def test_add_k_is_add_k_after_every_context_that_was_seen(documents: list[list[int]], k: float) -> None:
    p, counts = Reader(AddSpec(k=k), documents, 3), counted(documents, 3)
    words = [w for w in range(VOCABULARY) if w not in (PADDING, BEGIN)]
    for h in {gram[:-1] for n in counts for gram in counts[n]}:
        total = sum(counts[len(h) + 1][(*h, w)] for w in words)
        for w in words:
            exactly = (counts[len(h) + 1][(*h, w)] + k) / (total + k * len(words))
            assert p(w, h) == pytest.approx(exactly, abs=1e-12)


@given(documents=corpora(VOCABULARY))
def test_maximum_likelihood_is_a_relative_frequency(documents: list[list[int]]) -> None:
    p, counts = Reader(MaximumLikelihoodSpec(), documents, 3), counted(documents, 3)
    for h in {gram[:-1] for n in counts for gram in counts[n]}:
        after = {w: counts[len(h) + 1][(*h, w)] for w in range(VOCABULARY)}
        for w, times in after.items():
            assert p(w, h) == pytest.approx(float(Fraction(times, sum(after.values()))), abs=1e-12)


def test_a_word_seen_often_but_after_one_word_only_is_rare_elsewhere() -> None:
    """Kneser and Ney's point: Francisco (6) is more frequent than glasses (7), but follows San (5) alone."""
    documents = [[5, 6, END]] * 6 + [[w, 7, END] for w in (1, 4, 5, 7)]
    often, apart = Reader(MaximumLikelihoodSpec(), documents, 2), Reader(KneserNeySpec(), documents, 2)
    assert often(7) < often(6)
    assert apart(7) > 2 * apart(6)


def test_discounts_by_hand() -> None:
    """t = 10, 5, 3, 2: Y = ½, D₁ = 1 − ½, D₂ = 2 − 3·½·3/5, D₃ = 3 − 4·½·2/3."""
    counts = np.repeat([0, 1, 2, 3, 4, 9], [3, 10, 5, 3, 2, 6])
    assert discounts(counts) == pytest.approx([0, 0.5, 1.1, 5 / 3])


@pytest.mark.parametrize("counts", [[], [1], [1, 1, 2], [2, 2, 3], [1, 2, 3] + [4] * 9, [1, 2] + [3] * 9])
def test_discounts_of_too_little_text_fall_back(counts: list[int]) -> None:
    assert discounts(np.asarray(counts, dtype=np.int64)).tolist() == list(FALLBACK)


def test_what_was_never_seen_has_a_share() -> None:
    p = Reader(KneserNeySpec(), [[4, 5, END]], 2)
    assert p(UNKNOWN) == p(6) == p(7) > 0
    assert p(7, (4,)) > 0


@every_smoothing
def test_spec_goes_to_json_and_back(spec: SmoothingSpec) -> None:
    class Holder(Spec):
        smoothing: SmoothingSpec

    assert Holder.from_json(Holder(smoothing=spec).to_json()) == Holder(smoothing=spec)
