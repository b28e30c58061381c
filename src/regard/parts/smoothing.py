"""From counts of n-grams to probabilities, and what remains for what was never seen.

Every smoothing is said in one form (Chen and Goodman 1998 §2.8, eq. 22, and a floor): with h′ the context h
without its oldest word,

    p(w | h) = part(h, w) + weight(h) · p(w | h′) + floor(h)

``part`` is 0 for an n-gram that was not seen. A context that was never continued has weight 1 and floor 0:
the shorter one speaks for it. That holds for every smoothing, and is a choice: by the letter, maximum
likelihood has no answer there, and add-k the uniform one. Single words fall back on the uniform distribution
over all words that can be produced.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from regard.core.spec import Spec
from regard.parts.ngram_counts import Grams, NgramCounts


class Level(NamedTuple):
    """What follows contexts of one length."""

    parts: np.ndarray
    """One for each n-gram: context and word."""
    weights: np.ndarray
    """One for each context."""
    floors: np.ndarray
    """One for each context."""


class Smoothed(NamedTuple):
    words: np.ndarray
    """p(w) without any context, for the whole vocabulary."""
    levels: Sequence[Level]
    """What follows one word, two words, …"""


Smoothing: TypeAlias = Callable[[NgramCounts], Smoothed]


class SmoothingSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "maximum_likelihood": "regard.parts.smoothing:MaximumLikelihoodSpec",
        "add_k": "regard.parts.smoothing:AddSpec",
        "kneser_ney": "regard.parts.smoothing:KneserNeySpec",
    }

    def build(self) -> Smoothing:
        raise NotImplementedError


class MaximumLikelihoodSpec(SmoothingSpec):
    """Relative frequencies: what was not seen after a seen context is impossible there."""

    def build(self) -> Smoothing:
        return maximum_likelihood


class AddSpec(SmoothingSpec):
    """Every word seen k times more after every context that was seen at all."""

    k: float = Field(default=1.0, gt=0)
    """1 is Laplace's rule."""

    def build(self) -> Smoothing:
        return partial(add_k, k=self.k)


class KneserNeySpec(SmoothingSpec):
    """Interpolated modified Kneser-Ney: what to beat with counts (Chen and Goodman 1998 §3)."""

    def build(self) -> Smoothing:
        return kneser_ney


def maximum_likelihood(counts: NgramCounts) -> Smoothed:
    """c(h w) / c(h ·)."""
    return _smoothed(counts, [_level(grams, grams.counts) for grams in counts.orders])


def add_k(counts: NgramCounts, k: float) -> Smoothed:
    """(c(h w) + k) / (c(h ·) + k V), V the number of words that can be produced."""
    words = int(counts.producible.sum())
    return _smoothed(counts, [_level(grams, grams.counts, added=k, words=words) for grams in counts.orders])


def kneser_ney(counts: NgramCounts) -> Smoothed:
    """p(w | h) = (c(h w) − D(c)) / c(h ·) + γ(h) p(w | h′), D one of three discounts of its order.

    Below the highest order c counts in how many different contexts an n-gram was seen, not how often (Kneser
    and Ney 1995); where it begins with the begin token, before which nothing can stand, how often.
    """
    adjusted = [continuations(grams, above) for grams, above in pairwise(counts.orders)]
    adjusted.append(counts.orders[-1].counts)
    levels = [
        _level(grams, times, taken=discounts(times)[np.minimum(times, 3)])
        for grams, times in zip(counts.orders, adjusted, strict=True)
    ]
    return _smoothed(counts, levels)


def continuations(grams: Grams, above: Grams) -> np.ndarray:
    """N₁₊(• w₁ … w_n): after how many different words each n-gram was seen."""
    different = np.bincount(above.endings, minlength=len(grams.keys))
    return np.where(grams.initial, grams.counts, different)


FALLBACK = (0.0, 0.5, 1.0, 1.5)
"""Discounts where a corpus is too small to estimate them; KenLM's choice under ``--discount_fallback``."""


def discounts(counts: np.ndarray) -> np.ndarray:
    """What is taken from counts of 0, 1, 2, and 3 or more (Chen and Goodman 1998 eq. 26).

    With t_k the number of n-grams counted k times, Y = t₁ / (t₁ + 2 t₂) and D_k = k − (k+1) Y t_{k+1} / t_k.
    A small corpus may lack counts, or give a discount that is not above 0 and at most k: then all of the
    order's discounts are ``FALLBACK``, so that every context leaves something for the unseen.
    """
    times = np.bincount(np.minimum(counts, 5), minlength=6).astype(np.float64)
    if times[1:4].min() == 0:
        return np.asarray(FALLBACK)
    k = np.arange(1, 4)
    share = times[1] / (times[1] + 2 * times[2])
    found = k - (k + 1) * share * times[2:5] / times[1:4]
    usable = (found > 0).all() and (found <= k).all()
    return np.concatenate(([0.0], found)) if usable else np.asarray(FALLBACK)


def _level(
    grams: Grams, counts: np.ndarray, taken: np.ndarray | None = None, added: float = 0.0, words: int = 0
) -> Level:
    """``taken`` from each count goes to the shorter context; each of ``words`` words has ``added`` more."""
    taken = np.zeros(len(counts)) if taken is None else taken
    seen = np.bincount(grams.contexts, counts, minlength=grams.contexts_below)
    continued = seen > 0
    totals = np.where(continued, seen + added * words, 1.0)
    given_up = np.bincount(grams.contexts, taken, minlength=grams.contexts_below)
    return Level(
        parts=(counts - taken) / totals[grams.contexts],
        weights=np.where(continued, given_up / totals, 1.0),
        floors=np.where(continued, added / totals, 0.0),
    )


def _smoothed(counts: NgramCounts, levels: Sequence[Level]) -> Smoothed:
    """Single words are settled at once: below them there is only the uniform distribution."""
    parts, weights, floors = levels[0]
    uniform = counts.producible / counts.producible.sum()
    return Smoothed(parts + weights[0] * uniform + floors[0] * counts.producible, levels[1:])
