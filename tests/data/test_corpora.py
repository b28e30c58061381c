"""Embedded corpora: what a text says is what its answer says, and nothing of the test is in training."""

from collections import defaultdict
from datetime import date, timedelta

import numpy as np
import pytest
from babel import Locale
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import UsageError
from regard.data.corpora import EMBEDDED, embedded, toy
from regard.data.corpora.dates import FIRST_YEAR, LAST_YEAR, LOCALES, Form, dates, forms_of, split_of
from regard.data.corpora.typos import with_typo
from regard.data.pairs import Pairs, PairsSpec

some_day = st.dates(date(FIRST_YEAR, 1, 1), date(LAST_YEAR, 12, 31))
SAMPLE = dates("train", 12_000, seed=3)


@given(
    day=some_day, name=st.sampled_from(LOCALES), length=st.sampled_from(["short", "medium", "long", "full"])
)
def test_forms_are_written_as_babel_writes_them(day: date, name: str, length: str) -> None:
    locale = Locale.parse(name)
    pattern = str(locale.date_formats[length].pattern)
    expected = format_date(day, Form(pattern, locale).pattern, locale=name)
    assert Form(pattern, locale).write(day) == expected
    if "yy" not in pattern:
        assert expected == format_date(day, length, locale=name)  # type: ignore[arg-type]


def test_there_are_at_least_forty_locales_and_all_occur() -> None:
    assert len(set(LOCALES)) >= 40
    assert {written.locale for written in SAMPLE} == set(LOCALES)
    assert all(len(forms_of(name)) >= 4 for name in LOCALES)


def test_no_name_means_two_months() -> None:
    """Croatian would fail here: listopad is its October and the November of Poles and Czechs."""
    meanings: dict[str, set[int]] = defaultdict(set)
    for name in LOCALES:
        for context in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for month, written in Locale.parse(name).months[context][width].items():
                    meanings[written.lower().rstrip(".")].add(month)
    assert {name for name, months in meanings.items() if len(months) > 1} == set()


@pytest.mark.parametrize("typos", [0.0, 0.5])
def test_a_text_has_one_answer(typos: float) -> None:
    answers: dict[str, set[str]] = defaultdict(set)
    for seed in range(2):
        for written in dates("train", 12_000, seed, typos):
            answers[written.source].add(written.target)
    assert [text for text, found in answers.items() if len(found) > 1] == []


def test_the_year_and_the_day_can_be_read_off() -> None:
    """Digits of any script, in Python's reading: the year always, the day and a numeric month always."""
    for written in SAMPLE[:4000]:
        numbers = [int(part) for part in "".join(c if c.isdigit() else " " for c in written.source).split()]
        when = date.fromisoformat(written.target)
        assert numbers.count(when.year) == 1
        assert when.day in numbers
        rest = [number for number in numbers if number not in (when.year, when.day)]
        # Vietnamese numbers its weekdays: "Th 5" is a Thursday.
        assert set(rest) <= {when.month} or written.locale == "vi"


def test_slashed_dates_leave_no_doubt() -> None:
    found = 0
    for written in SAMPLE:
        parts = "".join(c for c in written.source if c.isdigit() or c == "/").split("/")
        if len(parts) == 3 and len(parts[0]) <= 2:
            found += 1
            first, second = int(parts[0]), int(parts[1])
            assert max(first, second) > 12 or first == second
    assert found > 120


def test_every_day_is_in_one_split_and_no_test_text_is_in_training() -> None:
    train, valid, test = ({d.target for d in dates(split, 4000, 1)} for split in ("train", "valid", "test"))
    assert not train & valid
    assert not train & test
    assert not valid & test
    assert not {d.source for d in SAMPLE} & {d.source for d in dates("test", 4000, 9)}
    assert {split_of(date.fromisoformat(day)) for day in test} == {"test"}
    days = [date(1900, 1, 1) + timedelta(days=i) for i in range(10_000)]
    assert sum(split_of(day) == "test" for day in days) == pytest.approx(500, abs=80)


def test_the_same_seed_gives_the_same_dates() -> None:
    assert dates("train", 500, 7) == dates("train", 500, 7)
    assert dates("train", 500, 7) != dates("train", 500, 8)
    assert dates("train", 900, 7, 0.3) == dates("train", 900, 7, 0.3)


def test_typos_change_some_texts_and_no_digits() -> None:
    clean, typed = dates("train", 4000, 7), dates("train", 4000, 7, typos=0.5)
    assert [d.target for d in clean] == [d.target for d in typed]
    changed = sum(a.source != b.source for a, b in zip(clean, typed, strict=True))
    assert 500 < changed < 2000
    for a, b in zip(clean, typed, strict=True):
        assert [c for c in a.source if c.isdigit()] == [c for c in b.source if c.isdigit()]


@given(text=st.text(max_size=20), seed=st.integers(0, 99))
def test_a_typo_is_small(text: str, seed: int) -> None:
    changed = with_typo(text, np.random.default_rng(seed))
    assert abs(len(changed) - len(text)) <= 1
    assert changed[:1] == text[:1]


def test_sources_look_as_people_write_them() -> None:
    texts = {d.source for d in SAMPLE}
    assert any(text.startswith("the ") for text in texts)
    assert any("1er " in text for text in texts)
    assert any(text != text.lower() for text in texts)
    assert any("۱۹" in text for text in texts)
    assert any("年" in text for text in texts)


ORACLES = {
    "copy": list,
    "reverse": lambda symbols: list(reversed(symbols)),
    "sort": lambda symbols: sorted(symbols),
}


@pytest.mark.parametrize("task", ["copy", "reverse", "sort"])
def test_toys_are_right_and_disjoint(task: str) -> None:
    corpus = embedded(task)
    for split in corpus:
        for source, target in split[:300]:
            assert target.split() == ORACLES[task](source.split())  # type: ignore[operator]
    sources = [{source for source, _ in split} for split in corpus]
    assert [len(split) for split in corpus] == [20_000, 500, 500]
    assert sum(len(split) for split in sources) == len(sources[0] | sources[1] | sources[2])
    assert toy("copy", 10, 1) == toy("copy", 10, 1) != toy("copy", 10, 2)


def test_the_embedded_dates_are_a_corpus() -> None:
    corpus = embedded("dates")
    assert [len(split) for split in corpus] == [40_000, 1_000, 1_000]
    assert len(set(corpus.test)) == 1_000
    pairs = Pairs.prepare(PairsSpec(), corpus.train[:500], corpus.valid[:50])
    assert pairs.report.examples == 500


def test_an_unknown_corpus_names_the_nearest() -> None:
    assert set(EMBEDDED) == {"dates", "copy", "reverse", "sort"}
    with pytest.raises(UsageError, match=r"no embedded corpus 'date' \(did you mean 'dates'\?\)"):
        embedded("date")
