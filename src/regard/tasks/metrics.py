"""Scores of answers against references, each with a signature that says how it was computed."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import NamedTuple, Protocol, runtime_checkable

from regard.core.errors import DataError, UsageError, nearest


class Score(NamedTuple):
    value: float
    signature: str


@runtime_checkable
class Metric(Protocol):
    """``compute`` takes whole lists: most metrics are not means over lines."""

    @property
    def name(self) -> str: ...

    @property
    def higher_is_better(self) -> bool: ...

    def compute(self, hypotheses: list[str], references: list[str]) -> Score: ...


@dataclass(frozen=True)
class _Paired:
    """A metric over lines that belong together."""

    name: str
    higher_is_better: bool = True

    def compute(self, hypotheses: list[str], references: list[str]) -> Score:
        if len(hypotheses) != len(references):
            raise DataError(f"{self.name}: {len(hypotheses)} answers, but {len(references)} references")
        if not references:
            raise DataError(f"{self.name}: there is nothing to score: no answers and no references")
        return self.score(hypotheses, references)

    @abstractmethod
    def score(self, hypotheses: list[str], references: list[str]) -> Score: ...


@dataclass(frozen=True)
class Bleu(_Paired):
    """Papineni et al. 2002, 0 to 100, by sacrebleu (Post 2018)."""

    tokenize: str = "13a"
    lowercase: bool = False

    def score(self, hypotheses: list[str], references: list[str]) -> Score:
        from sacrebleu.metrics.bleu import BLEU  # slow to import, and rarely needed

        # force: tokenised input is what ``bleu_tok`` is for, no need to warn of it
        bleu = BLEU(tokenize=self.tokenize, lowercase=self.lowercase, force=True)
        value = bleu.corpus_score(hypotheses, [references]).score
        return Score(float(value), f"BLEU|{bleu.get_signature()}")


@dataclass(frozen=True)
class Chrf(_Paired):
    """Character n-gram F-score (Popović 2015), 0 to 100, by sacrebleu; word_order 2 is chrF++."""

    word_order: int = 0

    def score(self, hypotheses: list[str], references: list[str]) -> Score:
        from sacrebleu.metrics.chrf import CHRF

        chrf = CHRF(word_order=self.word_order)
        value = chrf.corpus_score(hypotheses, [references]).score
        return Score(float(value), f"{'chrF2' + '+' * self.word_order}|{chrf.get_signature()}")


@dataclass(frozen=True)
class Exact(_Paired):
    """Share of lines that are exactly right, 0 to 1; blanks at the ends do not count."""

    def score(self, hypotheses: list[str], references: list[str]) -> Score:
        right = sum(a.strip() == b.strip() for a, b in zip(hypotheses, references, strict=True))
        return Score(right / len(references), f"exact|case:mixed|strip:ends|version:regard-{_version()}")


@dataclass(frozen=True)
class TokenAccuracy(_Paired):
    """Share of blank-separated tokens that stand in their place, 0 to 1; a missing or extra one is wrong."""

    def score(self, hypotheses: list[str], references: list[str]) -> Score:
        right = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = hypothesis.split(), reference.split()
            right += sum(a == b for a, b in zip(ours, theirs, strict=False))
            total += max(len(ours), len(theirs))
        signature = f"accuracy|case:mixed|tok:blank|len:longer|version:regard-{_version()}"
        return Score(right / total if total else 1.0, signature)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Bleu("bleu"),
        Bleu("bleu_tok", tokenize="none"),
        Bleu("bleu_lc", lowercase=True),
        Chrf("chrf"),
        Chrf("chrf++", word_order=2),
        Exact("exact"),
        TokenAccuracy("accuracy"),
    )
}

_OTHERS = {
    **dict.fromkeys(("loss", "perplexity", "mse"), False),
    **dict.fromkeys(("pearson", "spearman", "f1", "macro_f1", "matthews", "exact_match"), True),
    **dict.fromkeys(("precision", "recall", "binary_f1", "proportional_f1"), True),
}
"""Scores that are not of texts, and whether more of them is better."""


def metric_named(name: str) -> Metric:
    if name not in METRICS:
        raise UsageError(f"there is no metric {name!r}{nearest(name, METRICS)}")
    return METRICS[name]


def higher_is_better(name: str) -> bool:
    """Which way a validation score is good."""
    if name in METRICS:
        return METRICS[name].higher_is_better
    if name not in _OTHERS:
        raise UsageError(f"there is no score {name!r}{nearest(name, [*METRICS, *_OTHERS])}")
    return _OTHERS[name]


def _version() -> str:
    return metadata.version("regard")
