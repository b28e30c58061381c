"""Beam search: the best few hypotheses of each sentence side by side.

At each step every live hypothesis of a sentence is continued by every token, and the continuations are put
in order of their log-probability. Those among the first ``size`` that end are finished and set aside; the
first ``size`` that do not end live on. So finished hypotheses take no room from live ones. A sentence is
done, and leaves the batch, when its stop rule says so, at its greatest length, or when nothing can follow.
Of what finished, the best after length normalisation are the answer; when nothing did, what lived last is,
marked as not finished.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from regard.core.state import State, select_hypotheses, select_rows
from regard.search.constraints import IMPOSSIBLE
from regard.search.continuations import best_continuations, precise
from regard.search.goals import seek
from regard.search.hypotheses import Found, Hypothesis, normalise
from regard.search.kept import FINISHED, KEPT, PRUNED, Expanded
from regard.search.search import Question, Searcher, SearchSpec
from regard.search.stopping import EnoughFinishedSpec, Standing, StopRule, StopSpec
from regard.search.trellis import Paths, Trellis


class Live(NamedTuple):
    """The hypotheses that go on, best first, one row per sentence still searched."""

    sentence: Int[Tensor, "sentences"]
    longest: Int[Tensor, "sentences"]
    node: Int[Tensor, "sentences width"]
    total: Float[Tensor, "sentences width"]
    """Log-probability so far; -inf marks a place that is not taken."""


class Finished(NamedTuple):
    """The best finished hypotheses, best first, one row per sentence still searched."""

    many: Int[Tensor, "sentences"]
    """How many finished in all, also those no longer among the best."""
    score: Float[Tensor, "sentences best"]
    """-inf marks a place that is not taken."""
    node: Int[Tensor, "sentences best"]
    """The last token before the end."""
    end_log_prob: Float[Tensor, "sentences best"]


class Ranked(NamedTuple):
    """Continuations of a sentence's hypotheses, best first."""

    total: Float[Tensor, "sentences count"]
    row: Int[Tensor, "sentences count"]
    """Which row of the step is continued …"""
    parent: Int[Tensor, "sentences count"]
    """… and which node that is."""
    token: Int[Tensor, "sentences count"]
    log_prob: Float[Tensor, "sentences count"]
    """Of the token, as the model gave it."""
    place: Int[Tensor, "sentences count"]
    """0 for the best of its bank; without goals there is one bank."""


class Ending(NamedTuple):
    """A hypothesis of the answer: where it is in the trellis, and what its end added (None: no end)."""

    node: int
    score: float
    end_log_prob: float | None


class Beam(Searcher):
    def __init__(self, spec: "BeamSpec", stop: StopRule) -> None:
        super().__init__(spec.alpha, spec.shortest, spec.constraints)
        self.size, self.best, self.stop = spec.size, spec.best, stop

    def search(self, question: Question) -> Found:
        trellis = Trellis(len(question.first))
        endings: list[list[Ending]] = [[] for _ in range(len(question.first))]
        live, finished = self._begin(question)
        tokens, state, memory = question.first, question.state, question.rules.start(question.first)
        time = 0
        while len(live.sentence):
            log_probs, state = question.step(tokens, state)
            ranked = self._rank(question, live, log_probs, memory, time)
            time += 1
            room = min(self.size, live.total.shape[1] * (log_probs.shape[1] - 1))
            is_end = ranked.token == question.end
            if bool(is_end.any()) or question.keep is not None:
                ends, stays = self._divide(ranked, is_end, room)
                finished = self._set_aside(finished, ranked, ends, time)
                chosen = Ranked(*(column.gather(1, stays) for column in ranked))
            else:
                chosen = Ranked(*(column[:, :room] for column in ranked))
            node = trellis.grow(chosen.parent, chosen.token, chosen.log_prob)
            if question.keep is not None:
                self._keep(question, live, log_probs, ranked, ends, stays, node, time)

            before, live = live, live._replace(node=node, total=chosen.total)
            done, rest = self._done(live, finished, time), None
            if bool(done.any()):
                for at in done.nonzero().squeeze(1).tolist():
                    endings[int(live.sentence[at])] = self._harvest(at, before, live, finished, time)
                rest = (~done).nonzero().squeeze(1)
                live, finished, chosen = select_rows((live, finished, chosen), rest)
            tokens = chosen.token.flatten()
            state, memory = _reorder((state, memory), chosen.row.flatten(), len(log_probs), rest)
            memory = question.rules.follow(tokens, memory)
        paths = trellis.read()
        return [[_answer(paths, ending) for ending in some] for some in endings]

    def _begin(self, question: Question) -> tuple[Live, Finished]:
        """One live hypothesis per sentence, so that no two beams are copies of each other."""
        first = question.first
        sentence = torch.arange(len(first), device=first.device)
        total = torch.zeros(len(first), 1, dtype=precise(first.device), device=first.device)
        nothing = total.new_full((len(first), self.best), IMPOSSIBLE)
        nowhere = torch.zeros_like(nothing, dtype=torch.long)
        finished = Finished(torch.zeros_like(sentence), nothing, nowhere, nothing)
        return Live(sentence, question.longest, sentence[:, None], total), finished

    def _rank(
        self,
        question: Question,
        live: Live,
        log_probs: Float[Tensor, "rows vocabulary"],
        memory: State,
        time: int,
    ) -> Ranked:
        sentences, width = live.total.shape
        allowed = question.rules.restrict(log_probs, memory)
        wanted = question.rules.wanted(memory)
        if wanted is None:
            # Each live hypothesis can end once: with so many more there are always enough that do not end.
            count = min(self.size + width, width * log_probs.shape[1])
            best = best_continuations(allowed, live.total, count)
        else:
            best = seek(allowed, live.total, wanted, self.size, question.rules, memory)
        question.refuse_nan(best.cumulative, time, live.sentence)
        row = best.slot + torch.arange(sentences, device=best.slot.device)[:, None] * width
        parent = live.node.gather(1, best.slot)
        own = log_probs[row, best.token]
        return Ranked(best.cumulative, row, parent, best.token, own, best.place)

    def _divide(
        self, ranked: Ranked, is_end: Bool[Tensor, "sentences count"], room: int
    ) -> tuple[Bool[Tensor, "sentences count"], Int[Tensor, "sentences next_width"]]:
        """Which continuations finish, and the places of those that live on."""
        ends = is_end & (ranked.total > IMPOSSIBLE) & (ranked.place < self.size)
        return ends, is_end.byte().argsort(dim=1, stable=True)[:, :room]

    def _set_aside(
        self, finished: Finished, ranked: Ranked, ends: Bool[Tensor, "sentences count"], length: int
    ) -> Finished:
        score = normalise(ranked.total, length, self.alpha).masked_fill(~ends, IMPOSSIBLE)
        score = torch.cat((finished.score, score), dim=1)
        score, order = score.sort(dim=1, descending=True, stable=True)
        order = order[:, : self.best]
        node = torch.cat((finished.node, ranked.parent), dim=1).gather(1, order)
        end_log_prob = torch.cat((finished.end_log_prob, ranked.log_prob), dim=1).gather(1, order)
        return Finished(finished.many + ends.sum(1), score[:, : self.best], node, end_log_prob)

    def _done(self, live: Live, finished: Finished, time: int) -> Bool[Tensor, "sentences"]:
        if live.total.shape[1] == 0:
            return torch.ones_like(live.sentence, dtype=torch.bool)
        most = live.total.amax(1)
        standing = Standing(finished.many, finished.score[:, -1], most, live.longest, self.alpha)
        return (most == IMPOSSIBLE) | (live.longest <= time) | self.stop(standing)

    def _harvest(self, at: int, before: Live, live: Live, finished: Finished, time: int) -> list[Ending]:
        """The answer to the sentence in row ``at``: what finished, else what lived last."""
        columns = (finished.node[at], finished.score[at], finished.end_log_prob[at])
        endings = [Ending(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]
        endings = [ending for ending in endings if ending.score > IMPOSSIBLE]
        for last, length in ((live, time), (before, time - 1)):
            if not endings:
                totals = zip(last.node[at].tolist(), last.total[at].tolist(), strict=True)
                alive = [(node, total) for node, total in totals if total > IMPOSSIBLE][: self.best]
                endings = [Ending(node, normalise(total, length, self.alpha), None) for node, total in alive]
        return endings

    def _keep(
        self,
        question: Question,
        live: Live,
        log_probs: Float[Tensor, "rows vocabulary"],
        ranked: Ranked,
        ends: Bool[Tensor, "sentences count"],
        stays: Int[Tensor, "sentences next_width"],
        node: Int[Tensor, "sentences next_width"],
        time: int,
    ) -> None:
        assert question.keep is not None
        sentence = live.sentence.repeat_interleave(live.node.shape[1])
        question.keep.look(sentence, live.node.flatten(), log_probs, live.total.flatten() > IMPOSSIBLE)
        status = torch.full_like(ranked.token, PRUNED).scatter(1, stays, KEPT).masked_fill(ends, FINISHED)
        nodes = torch.zeros_like(ranked.token).scatter(1, stays, node)
        score = normalise(ranked.total, time, self.alpha)
        columns = (ranked.parent, ranked.token, ranked.log_prob, ranked.total, score, status, nodes)
        question.keep.expand(time, live.sentence, Expanded(*columns))


def _reorder(
    state: State, rows: Int[Tensor, "rows"], before: int, rest: Int[Tensor, "sentences"] | None
) -> State:
    """Copying a long state is dear: leave it alone when every row stays where it was, and what belongs to the
    sentence unless some sentences are done and only the ``rest`` goes on."""
    if rest is None and len(rows) == before and torch.equal(rows, torch.arange(before, device=rows.device)):
        return state
    return select_hypotheses(state, rows, rest)


def _answer(paths: Paths, ending: Ending) -> Hypothesis:
    tokens, log_probs = paths.to(ending.node)
    if ending.end_log_prob is not None:
        log_probs.append(ending.end_log_prob)
    return Hypothesis(tokens, ending.end_log_prob is not None, sum(log_probs, 0.0), ending.score, log_probs)


class BeamSpec(SearchSpec):
    size: int = Field(5, ge=1)
    """How many live hypotheses each sentence has."""
    best: int = Field(1, ge=1)
    """How many hypotheses to return for each sentence; fewer when fewer finished."""
    stop: StopSpec = EnoughFinishedSpec()
    """When to stop before the greatest length."""

    @model_validator(mode="after")
    def _enough_places(self) -> "BeamSpec":
        if self.best > self.size:
            raise ValueError(
                f"best: got {self.best}, but a beam of size {self.size} has no more than that many"
            )
        return self

    @property
    def answers(self) -> int:
        return self.best

    def build(self) -> Beam:
        return Beam(self, self.stop.build(self.size, self.best))
