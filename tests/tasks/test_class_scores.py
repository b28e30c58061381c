"""Scores of classes against scikit-learn and by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from regard.tasks.class_scores import class_scores

NAMES = ("0", "1", "2", "3")


def pairs(names: tuple[str, ...]) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), min_size=1, max_size=40)


@pytest.mark.filterwarnings("ignore:A single label")
@given(pairs(NAMES))
def test_several_classes_are_judged_as_by_scikit_learn(both: list[tuple[str, str]]) -> None:
    found, wanted = zip(*both, strict=True)
    scores = class_scores(found, wanted, NAMES)
    assert list(scores) == ["accuracy", "macro_f1", "matthews"]
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(wanted, found))
    assert scores["macro_f1"] == pytest.approx(
        metrics.f1_score(wanted, found, average="macro", zero_division=0)
    )
    assert scores["matthews"] == pytest.approx(metrics.matthews_corrcoef(wanted, found))


@given(pairs(("no", "yes")))
def test_the_second_of_two_classes_is_the_positive_one(both: list[tuple[str, str]]) -> None:
    found, wanted = zip(*both, strict=True)
    expected = metrics.f1_score(wanted, found, pos_label="yes", zero_division=0)
    assert class_scores(found, wanted, ("no", "yes"))["f1"] == pytest.approx(expected)


def test_by_hand() -> None:
    """Two of three found 1 are right, two of three wanted are found; the correlation is (2·1 − 1·1)/(3·2)."""
    scores = class_scores(list("11100"), list("11010"), "01")
    assert scores == pytest.approx(
        {"accuracy": 0.6, "f1": 2 / 3, "macro_f1": (2 / 3 + 0.5) / 2, "matthews": 1 / 6}
    )


def test_who_always_says_the_same_is_not_correlated() -> None:
    assert class_scores(["a"] * 4, ["a", "b", "a", "a"], "ab")["matthews"] == 0


def test_a_class_nobody_knew_counts_as_missed() -> None:
    scores = class_scores(["a", "b"], ["a", "new"], "ab")
    assert scores["accuracy"] == 0.5
    assert "f1" not in scores
    assert scores["macro_f1"] == pytest.approx(1 / 3)
