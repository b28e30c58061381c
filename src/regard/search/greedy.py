"""Greedy search: the most probable token at every step."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.search.continuations import best_continuations
from regard.search.hypotheses import Found
from regard.search.search import Question, Searcher, SearchSpec
from regard.search.walk import walk

_FEW = 1 << 16
"""Values of which the largest is found sooner in one pass than by way of chunks."""


class Greedy(Searcher):
    """Finds what a beam of size 1 finds, with less work."""

    def search(self, question: Question) -> Found:
        return walk(question, most_probable, copies=1, alpha=self.alpha)


def most_probable(
    allowed: Float[Tensor, "rows vocabulary"], walker: Int[Tensor, "rows"], time: int
) -> Int[Tensor, "rows"]:
    if allowed.numel() < _FEW:
        return allowed.argmax(1)
    nothing_yet = torch.zeros(len(allowed), 1, dtype=allowed.dtype, device=allowed.device)
    return best_continuations(allowed, nothing_yet, 1).token.squeeze(1)


class GreedySpec(SearchSpec):
    @property
    def steady(self) -> bool:
        return True

    def build(self) -> Greedy:
        return Greedy(self.alpha, self.shortest, self.constraints)
