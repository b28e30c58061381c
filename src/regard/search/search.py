"""The search family: what all searches are asked, and what they have in common.

A search knows a model only as a ``Step``. It receives one row of state and one first token per sentence
and returns, for each sentence, its hypotheses, best first. What it finds for a sentence does not depend on
which other sentences are in the batch.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regard.core.errors import RegardError, UsageError
from regard.core.spec import Spec
from regard.core.state import State
from regard.search.constraints import Constraint, ConstraintSpec, MinLength, Rules
from regard.search.hypotheses import Found
from regard.search.kept import Kept
from regard.search.step import Step


class SearchSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "greedy": "regard.search.greedy:GreedySpec",
        "beam": "regard.search.beam:BeamSpec",
        "sampling": "regard.search.sampling:SamplingSpec",
        "exhaustive": "regard.search.exhaustive:ExhaustiveSpec",
        "ranking": "regard.search.ranking:RankingSpec",
    }

    alpha: float = Field(1.0, ge=0)
    """Length normalisation: score = log P(y) / |y|^alpha, where |y| counts the end token."""
    longest_ratio: float = Field(2.0, ge=0)
    """Greatest length of an answer as a multiple of its source's length …"""
    longest_extra: int = Field(10, ge=1)
    """… plus this many tokens. The end token counts."""
    shortest: int = Field(0, ge=0)
    """Fewest tokens of an answer. The end token does not count."""
    constraints: tuple[ConstraintSpec, ...] = ()
    """What holds for every sentence; constraints of single sentences are handed to the search itself."""

    def longest(self, source: int) -> int:
        """Greatest length of an answer to a source of that length (0 where there is none)."""
        return int(source * self.longest_ratio) + self.longest_extra

    @property
    def answers(self) -> int:
        """How many are given for each sentence."""
        return 1

    @property
    def steady(self) -> bool:
        """Whether a token that was chosen stays: then an answer can be shown while it is written."""
        return False

    def build(self) -> "Searcher":
        raise NotImplementedError


@dataclass(frozen=True)
class Question:
    """What a search is to find, with everything filled in."""

    step: Step
    state: State
    first: Int[Tensor, "sentences"]
    end: int
    longest: Int[Tensor, "sentences"]
    rules: Rules
    numbers: list[int]
    keep: Kept | None

    def refuse_nan(
        self, best: Float[Tensor, "rows *more"], time: int, owner: Int[Tensor, "rows"], owners: int = 1
    ) -> None:
        """``best`` of what each row may use, which is NaN if anything is. So many ``owners`` belong to
        one sentence."""
        if math.isnan(float(best.sum())):
            bad = best.flatten(1).isnan().any(1) if best.dim() > 1 else best.isnan()
            number = self.numbers[int(owner[bad][0]) // owners]
            raise RegardError(f"the model gave NaN probabilities at step {time + 1} of sentence {number}")


class Searcher(ABC):
    """A search, ready to be used. It keeps nothing between calls."""

    def __init__(self, alpha: float, shortest: int, constraints: Sequence[ConstraintSpec]) -> None:
        self.alpha, self.shortest = alpha, shortest
        self.constraints = [spec.build() for spec in constraints]

    @torch.no_grad()
    def __call__(
        self,
        step: Step,
        state: State,
        first: Int[Tensor, "sentences"],
        end: int,
        longest: int | Int[Tensor, "sentences"],
        constraints: Sequence[Constraint] = (),
        keep: Kept | None = None,
        numbers: Sequence[int] | None = None,
    ) -> Found:
        """Search all sentences of a batch.

        ``state`` and ``first`` have one row per sentence. ``longest`` is the number of steps after which a
        hypothesis is cut off; the end token takes one step. ``numbers`` are the sentences' places in the
        whole input (default: in this batch): samples are drawn by them, and errors and ``keep``, which needs
        them to differ, name them.
        """
        limits = torch.as_tensor(longest, device=first.device).expand(len(first))
        if len(first) == 0:
            return []
        if int(limits.min()) < 1:
            raise UsageError(f"longest: got {int(limits.min())}, but every answer needs at least 1 step")
        numbers = list(range(len(first))) if numbers is None else list(numbers)
        apart = len(numbers if keep is None else set(numbers))
        if apart != len(first):
            raise UsageError(f"{apart} different sentence numbers for {len(first)} sentences")
        always = [MinLength(self.shortest, end)] if self.shortest else []
        rules = Rules([*always, *self.constraints, *constraints])
        if keep is not None:
            keep.open(numbers)
        return self.search(Question(step, state, first, end, limits, rules, numbers, keep))

    @abstractmethod
    def search(self, question: Question) -> Found:
        """Find the answers to all sentences."""
