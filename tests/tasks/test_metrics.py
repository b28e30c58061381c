"""Metrics against hand counts, and against sacrebleu for what is its own."""

import math

import pytest
import sacrebleu

from regard.core.errors import DataError, UsageError
from regard.tasks.metrics import METRICS, higher_is_better, metric_named

HYPOTHESES = ["the cat sat on the mat .", "A dog , barks", "all right"]
REFERENCES = ["the cat sat on a mat .", "a dog barks", "all right"]


def test_bleu_by_hand() -> None:
    """4 of 5, 3 of 4, 2 of 3 and 1 of 2 n-grams, no brevity penalty."""
    score = metric_named("bleu").compute(["a b c d x"], ["a b c d y"])
    assert score.value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


def test_bleu_is_short_when_brief() -> None:
    score = metric_named("bleu").compute(["a b c d"], ["a b c d e"])
    assert score.value == pytest.approx(100 * math.exp(1 - 5 / 4))


@pytest.mark.parametrize(
    ("name", "expected", "signature"),
    [
        (
            "bleu",
            sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score,
            "case:mixed|eff:no|tok:13a|smooth:exp",
        ),
        (
            "bleu_tok",
            sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="none", force=True).score,
            "tok:none",
        ),
        ("bleu_lc", sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=True).score, "case:lc"),
        (
            "chrf",
            sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score,
            "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0",
        ),
        ("chrf++", sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score, "nw:2"),
    ],
)
def test_sacrebleu_with_its_signature(name: str, expected: float, signature: str) -> None:
    score = metric_named(name).compute(HYPOTHESES, REFERENCES)
    assert score.value == expected
    assert signature in score.signature
    assert f"version:{sacrebleu.__version__}" in score.signature


def test_variants_of_bleu_differ() -> None:
    names = ["bleu", "bleu_tok", "bleu_lc"]
    hypotheses, references = ["The house, is big."], ["the house, is big ."]
    assert len({metric_named(name).compute(hypotheses, references).value for name in names}) == 3


def test_exact_share() -> None:
    score = metric_named("exact").compute(["a b", "A b", " c ", "d"], ["a b", "a b", "c", "e"])
    assert score.value == 0.5
    assert score.signature.startswith("exact|case:mixed|strip:ends|version:regard-")


def test_accuracy_counts_places_missing_and_extra_ones() -> None:
    score = metric_named("accuracy").compute(["N V N", "D N", "D"], ["N V D", "D N V N", ""])
    assert score.value == (2 + 2 + 0) / (3 + 4 + 1)
    assert metric_named("accuracy").compute([""], [""]).value == 1.0


def test_a_perfect_answer_is_perfect_everywhere() -> None:
    lines = ["the cat sat on a mat .", "a dog barks at it"]
    for metric in METRICS.values():
        assert metric.compute(lines, lines).value == pytest.approx(
            100.0 if metric.name[:2] in ("bl", "ch") else 1.0
        )
        assert metric.higher_is_better


@pytest.mark.parametrize("name", list(METRICS))
def test_answers_without_references_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="2 answers, but 1 references"):
        metric_named(name).compute(["a", "b"], ["a"])
    with pytest.raises(DataError, match="nothing to score"):
        metric_named(name).compute([], [])


def test_names_are_helped_with() -> None:
    with pytest.raises(UsageError, match=r"no metric 'blue' .did you mean 'bleu'"):
        metric_named("blue")
    with pytest.raises(UsageError, match=r"no score 'los' .*'loss'"):
        higher_is_better("los")
    assert [higher_is_better(name) for name in ("loss", "perplexity", "bleu")] == [False, False, True]
    assert all(name == metric.name for name, metric in METRICS.items())
