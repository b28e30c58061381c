"""Sampling: each next token is drawn from the model's distribution, or from its more probable part."""

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regard.search.continuations import precise
from regard.search.hypotheses import Found
from regard.search.search import Question, Searcher, SearchSpec
from regard.search.walk import walk

ALMOST_ONE = 1 - 2.0**-40
"""Random numbers stay below this, so that rounding can never choose a token of probability 0."""


class Sampling(Searcher):
    """Sample number i of sentence number n depends on (seed, n, i) and the model, and on nothing else."""

    def __init__(self, spec: "SamplingSpec") -> None:
        super().__init__(spec.alpha, spec.shortest, spec.constraints)
        self.temperature, self.top_k, self.top_p = spec.temperature, spec.top_k, spec.top_p
        self.seed, self.best = spec.seed, spec.best

    def search(self, question: Question) -> Found:
        chances = self._chances(question)

        def choose(
            allowed: Float[Tensor, "rows vocabulary"], walker: Int[Tensor, "rows"], time: int
        ) -> Int[Tensor, "rows"]:
            return draw(allowed, chances[walker, time], self.temperature, self.top_k, self.top_p)

        return walk(question, choose, copies=self.best, alpha=self.alpha)

    def _chances(self, question: Question) -> Float[Tensor, "walkers time"]:
        """Numbers in [0, 1) for every walker and step, keyed so that neighbours in a batch do not matter."""
        steps = int(question.longest.max())
        keys = [[self.seed, number, copy] for number in question.numbers for copy in range(self.best)]
        chances = np.stack([np.random.default_rng(key).random(steps) for key in keys])
        device = question.first.device
        return torch.from_numpy(chances).clamp_max(ALMOST_ONE).to(device, precise(device))


def draw(
    log_probs: Float[Tensor, "rows vocabulary"],
    chance: Float[Tensor, "rows"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Int[Tensor, "rows"]:
    """One token per row; which one is a function of ``chance`` in [0, 1).

    First the temperature, then the ``top_k`` most probable (Fan et al. 2018), then of those the fewest
    whose share reaches ``top_p`` (Holtzman et al. 2020).
    """
    tokens = None
    if top_k is not None and top_k < log_probs.shape[1]:
        log_probs, tokens = log_probs.topk(top_k, dim=1)
    log_probs = (log_probs.to(chance.dtype) / temperature).log_softmax(1)
    choice = _at(log_probs.exp(), chance) if top_p is None else _in_nucleus(log_probs, chance, top_p)
    return choice if tokens is None else tokens.gather(1, choice[:, None]).squeeze(1)


def _at(shares: Float[Tensor, "rows choices"], chance: Float[Tensor, "rows"]) -> Int[Tensor, "rows"]:
    """The choice at which the running sum of shares first exceeds ``chance`` of their total."""
    running = shares.cumsum(1)
    target = chance[:, None] * running[:, -1:]
    return torch.searchsorted(running, target, right=True).clamp_max(shares.shape[1] - 1).squeeze(1)


def _in_nucleus(
    log_probs: Float[Tensor, "rows vocabulary"], chance: Float[Tensor, "rows"], top_p: float, width: int = 128
) -> Int[Tensor, "rows"]:
    """Sorting a whole vocabulary is slow and rarely needed: look at its top, further where that is short."""
    width = min(width, log_probs.shape[1])
    values, tokens = log_probs.topk(width, dim=1)
    probabilities = values.exp()
    running = probabilities.cumsum(1)
    inside = running - probabilities < top_p
    choice = tokens.gather(1, _at(probabilities * inside, chance)[:, None]).squeeze(1)
    short = running[:, -1] < top_p
    if width < log_probs.shape[1] and bool(short.any()):
        choice[short] = _in_nucleus(log_probs[short], chance[short], top_p, 8 * width)
    return choice


class SamplingSpec(SearchSpec):
    temperature: float = Field(1.0, gt=0)
    """Below 1 the probable becomes more probable; near 0 it is greedy search."""
    top_k: int | None = Field(None, ge=1)
    """Draw from this many most probable tokens only."""
    top_p: float | None = Field(None, gt=0, le=1)
    """Draw from the fewest most probable tokens that together have this probability."""
    seed: int = Field(1, ge=0)
    """The same seed gives a sentence the same samples."""
    best: int = Field(1, ge=1)
    """How many samples of each sentence; returned best first."""

    @property
    def answers(self) -> int:
        return self.best

    @property
    def steady(self) -> bool:
        return self.best == 1

    def build(self) -> Sampling:
        return Sampling(self)
