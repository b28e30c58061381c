"""One path per walker, a token at a time: what greedy search and sampling have in common."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.state import repeat_rows, select_rows
from regard.search.constraints import IMPOSSIBLE, NONE
from regard.search.continuations import precise
from regard.search.hypotheses import Found, Hypothesis, normalise
from regard.search.kept import FINISHED, KEPT, Expanded
from regard.search.search import Question
from regard.search.trellis import Paths, Trellis

Choose: TypeAlias = Callable[
    [Float[Tensor, "rows vocabulary"], Int[Tensor, "rows"], int], Int[Tensor, "rows"]
]
"""(what may be used, which walkers these rows are, time) → the next token of each."""


class Walks(NamedTuple):
    """What became of all walkers, written down when they leave."""

    node: Int[Tensor, "walkers"]
    """Where in the trellis each stood last."""
    total: Float[Tensor, "walkers"]
    ended: Bool[Tensor, "walkers"]


class Here(NamedTuple):
    """The walkers still on their way."""

    walker: Int[Tensor, "rows"]
    node: Int[Tensor, "rows"]
    total: Float[Tensor, "rows"]
    longest: Int[Tensor, "rows"]


def walk(question: Question, choose: Choose, copies: int, alpha: float) -> Found:
    """Let ``copies`` walkers of each sentence go until they end; those that ended leave the batch.

    Walker w belongs to sentence w // copies. All walkers of a sentence share its first step.
    """
    first, rules = question.first, question.rules
    trellis = Trellis(len(first))
    here, walks = _begin(question, copies)
    soonest = int(here.longest.min())
    tokens, state, memory = first, question.state, rules.start(first)
    wanted = rules.wanted(memory)
    if wanted is not None and bool((wanted != NONE).any()):
        raise UsageError("required words need a beam: greedy search and sampling cannot look for them")
    time = 0
    while len(here.walker):
        log_probs, state = question.step(tokens, state)
        allowed = rules.restrict(log_probs, memory)
        if time == 0 and copies > 1:
            log_probs, allowed, state, memory = repeat_rows((log_probs, allowed, state, memory), copies)
        question.refuse_nan(allowed.amax(1), time, here.walker, copies)
        tokens = choose(allowed, here.walker, time)
        value = allowed.gather(1, tokens[:, None]).squeeze(1)
        own = value if allowed is log_probs else log_probs.gather(1, tokens[:, None]).squeeze(1)
        time += 1
        before, after = here, trellis.grow(here.node, tokens, own)
        here = here._replace(node=after, total=here.total + value)
        possible, is_end = value > IMPOSSIBLE, tokens == question.end
        if question.keep is not None:
            taken = (before.node, tokens, own, here.total, possible & is_end, after)
            _keep(question, here.walker // copies, log_probs, time, taken, alpha)

        memory = rules.follow(tokens, memory)
        going = possible & ~is_end
        if time >= soonest:
            going &= here.longest > time
        if not bool(going.all()):
            _leave(walks, before, here, possible, is_end, (~going).nonzero().squeeze(1))
            rows = going.nonzero().squeeze(1)
            here, tokens, state, memory = select_rows((here, tokens, state, memory), rows)
            soonest = int(here.longest.min()) if len(rows) else 0
    answers = _answers(trellis.read(), walks, alpha)
    found = [answers[begin : begin + copies] for begin in range(0, len(answers), copies)]
    return [sorted(some, key=lambda one: -one.score) for some in found]


def _begin(question: Question, copies: int) -> tuple[Here, Walks]:
    first = question.first
    walker = torch.arange(len(first) * copies, device=first.device)
    total = torch.zeros(len(walker), dtype=precise(first.device), device=first.device)
    sentence = walker // copies
    walks = Walks(sentence.clone(), total.clone(), torch.zeros_like(walker, dtype=torch.bool))
    return Here(walker, sentence, total, question.longest[sentence]), walks


def _leave(
    walks: Walks,
    before: Here,
    after: Here,
    possible: Bool[Tensor, "rows"],
    is_end: Bool[Tensor, "rows"],
    rows: Int[Tensor, "left"],
) -> None:
    """A walker that nothing can follow stays where it was before."""
    walker = after.walker[rows]
    walks.node[walker] = torch.where(possible, after.node, before.node)[rows]
    walks.total[walker] = torch.where(possible, after.total, before.total)[rows]
    walks.ended[walker] = (possible & is_end)[rows]


def _answers(paths: Paths, walks: Walks, alpha: float) -> list[Hypothesis]:
    answers = []
    for node, total, ended in zip(*(column.tolist() for column in walks), strict=True):
        tokens, own = paths.to(node)
        score = normalise(total, len(tokens), alpha)
        answers.append(Hypothesis(tokens[: len(tokens) - ended], ended, sum(own, 0.0), score, own))
    return answers


def _keep(
    question: Question,
    sentence: Int[Tensor, "rows"],
    log_probs: Float[Tensor, "rows vocabulary"],
    time: int,
    taken: tuple[Tensor, ...],
    alpha: float,
) -> None:
    assert question.keep is not None
    node, tokens, own, reached, ended, after = taken
    question.keep.look(sentence, node, log_probs, torch.ones_like(ended))
    status = torch.where(ended, FINISHED, KEPT)
    columns = (node, tokens, own, reached, normalise(reached, time, alpha), status, after)
    question.keep.expand(time, sentence, Expanded(*(column[:, None] for column in columns)))
