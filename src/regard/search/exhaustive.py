"""Exhaustive search: every answer there is. For tiny problems, and as the oracle of all other searches."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.state import select_rows
from regard.search.constraints import IMPOSSIBLE
from regard.search.continuations import precise
from regard.search.hypotheses import Found, Hypothesis, normalise
from regard.search.kept import FINISHED, KEPT, Expanded
from regard.search.search import Question, Searcher, SearchSpec


class Level(NamedTuple):
    """Hypotheses of one length, in rows."""

    history: Int[Tensor, "rows time"]
    own: Float[Tensor, "rows time"]
    """Log-probability of each token, as the model gave it."""
    total: Float[Tensor, "rows"]
    node: Int[Tensor, "rows"]
    """Numbers for whoever keeps the search."""


class Exhaustive(Searcher):
    def __init__(self, spec: "ExhaustiveSpec") -> None:
        super().__init__(spec.alpha, spec.shortest, spec.constraints)
        self.best, self.most = spec.best, spec.most

    def search(self, question: Question) -> Found:
        return [self._search_one(question, sentence) for sentence in range(len(question.first))]

    def _search_one(self, question: Question, sentence: int) -> list[Hypothesis]:
        rules, first, longest = question.rules, question.first, int(question.longest[sentence])
        given = (first, question.state, rules.start(first))
        row = torch.tensor([sentence], device=first.device)
        tokens, state, memory = select_rows(given, row)
        none = torch.zeros(1, 0, dtype=precise(first.device), device=first.device)
        level = Level(none.long(), none, none.sum(1), row)
        finished: list[Hypothesis] = []
        for time in range(longest):
            log_probs, state = question.step(tokens, state)
            self._refuse_many(log_probs.shape[1], longest)
            question.refuse_nan(log_probs.amax(1), time, row.expand(len(log_probs)))
            after, parent = _expand(level, log_probs, rules.restrict(log_probs, memory))
            if len(parent) == 0:
                break
            tokens = after.history[:, -1]
            ends = tokens == question.end
            if question.keep is not None:
                question.keep.look(
                    row.expand(len(log_probs)), level.node, log_probs, level.total > IMPOSSIBLE
                )
                question.keep.expand(time + 1, row, self._expanded(level, after, parent, ends))
            finished += self._answers(select_rows(after, ends.nonzero().squeeze(1)), finished=True)
            rest = (~ends).nonzero().squeeze(1)
            level, parent, tokens = select_rows((after, parent, tokens), rest)
            if len(parent) == 0:
                break
            state, memory = select_rows((state, memory), parent)
            memory = rules.follow(tokens, memory)
        answers = finished or self._answers(level, finished=False)
        return sorted(answers, key=lambda one: -one.score)[: self.best]

    def _answers(self, level: Level, finished: bool) -> list[Hypothesis]:
        """The best of hypotheses of one length."""
        level = select_rows(level, level.total.topk(min(self.best, len(level.total))).indices)
        columns = (level.history.tolist(), level.own.tolist(), level.total.tolist())
        return [
            Hypothesis(
                tokens[: len(tokens) - finished],
                finished,
                sum(own, 0.0),
                normalise(total, len(tokens), self.alpha),
                own,
            )
            for tokens, own, total in zip(*columns, strict=True)
        ]

    def _refuse_many(self, vocabulary: int, longest: int) -> None:
        if vocabulary**longest > self.most:
            raise UsageError(
                f"exhaustive search would try {vocabulary}^{longest} = {vocabulary**longest} answers "
                f"(vocabulary {vocabulary}, longest {longest}), more than most={self.most}: use beam search"
            )

    def _expanded(self, level: Level, after: Level, parent: Int[Tensor, "grown"], ends: Tensor) -> Expanded:
        columns = (
            level.node[parent],
            after.history[:, -1],
            after.own[:, -1],
            after.total,
            normalise(after.total, after.history.shape[1], self.alpha),
            torch.where(ends, FINISHED, KEPT),
            after.node,
        )
        return Expanded(*(column[None] for column in columns))


def _expand(
    level: Level,
    log_probs: Float[Tensor, "rows vocabulary"],
    allowed: Float[Tensor, "rows vocabulary"],
) -> tuple[Level, Int[Tensor, "grown"]]:
    """Every possible continuation by one token, and the row each continues."""
    parent, token = (allowed > IMPOSSIBLE).nonzero(as_tuple=True)
    own = log_probs[parent, token].to(level.total.dtype)
    before = select_rows(level, parent)
    grown = Level(
        torch.cat((before.history, token[:, None]), dim=1),
        torch.cat((before.own, own[:, None]), dim=1),
        before.total + allowed[parent, token],
        int(level.node.max()) + 1 + torch.arange(len(token), device=token.device),
    )
    return grown, parent


class ExhaustiveSpec(SearchSpec):
    best: int = Field(1, ge=1)
    """How many hypotheses to return for each sentence; fewer when fewer finished."""
    most: int = Field(100_000, ge=1)
    """Refuse when vocabulary to the power of the greatest length is more than this."""

    @property
    def answers(self) -> int:
        return self.best

    def build(self) -> Exhaustive:
        return Exhaustive(self)
