"""Constraints: what an answer must, must not or had better not contain, token by token.

A constraint turns the model's log-probabilities into those the search may use. What it must remember is
state in, state out, one row per hypothesis, so beams reorder it together with the model's own state.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.core.state import State

NONE = -1
"""Stands for "no token" where lists of tokens have different lengths."""
IMPOSSIBLE = float("-inf")


class Constraint:
    """Base of all constraints: restricts nothing, remembers nothing, wants nothing.

    ``history`` holds the tokens of each hypothesis so far, without begin and end.
    """

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        """What to remember at the begin, one row per sentence."""
        return None

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        """What the search may use instead of ``log_probs``, which is not written to."""
        return log_probs

    def follow(self, history: Int[Tensor, "rows time"], state: State) -> State:
        """What to remember once the last token of ``history`` was taken."""
        return state

    def wanted(self, history: Int[Tensor, "rows time"], state: State) -> Int[Tensor, "rows options"]:
        """Tokens that bring a hypothesis nearer to a goal (-1: none). No columns at all: no goals."""
        return history.new_empty(len(history), 0)

    def progress(self, history: Int[Tensor, "rows time"], state: State) -> Int[Tensor, "rows"]:
        """How near a hypothesis is to its goals; at least one wanted token increases it."""
        return history.new_zeros(len(history))


class Rules:
    """All constraints of one search, with the history they look at; each restricts what is left to it."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self.constraints = tuple(constraints)

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        if not self.constraints:
            return None
        return first.new_empty(len(first), 0), tuple(one.start(first) for one in self.constraints)

    def restrict(
        self, log_probs: Float[Tensor, "rows vocabulary"], state: State
    ) -> Float[Tensor, "rows vocabulary"]:
        if state is None:
            return log_probs
        history, memories = state
        for one, memory in zip(self.constraints, memories, strict=True):
            log_probs = one.restrict(log_probs, history, memory)
        return log_probs

    def follow(self, tokens: Int[Tensor, "rows"], state: State) -> State:
        if state is None:
            return None
        history, memories = state
        history = torch.cat((history, tokens[:, None]), dim=1)
        pairs = zip(self.constraints, memories, strict=True)
        return history, tuple(one.follow(history, memory) for one, memory in pairs)

    def wanted(self, state: State) -> Int[Tensor, "rows options"] | None:
        """None when no constraint of any sentence has goals."""
        if state is None:
            return None
        history, memories = state
        pairs = zip(self.constraints, memories, strict=True)
        options = torch.cat([one.wanted(history, memory) for one, memory in pairs], dim=1)
        return options if options.shape[1] else None

    def progress(self, state: State) -> Int[Tensor, "rows"]:
        history, memories = state
        pairs = zip(self.constraints, memories, strict=True)
        return torch.stack([one.progress(history, memory) for one, memory in pairs]).sum(0)


class MinLength(Constraint):
    """No end before ``shortest`` tokens."""

    def __init__(self, shortest: int, end: int) -> None:
        self.shortest, self.end = shortest, end

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        if history.shape[1] >= self.shortest:
            return log_probs
        log_probs = log_probs.clone()
        log_probs[:, self.end] = IMPOSSIBLE
        return log_probs


class ForcedPrefix(Constraint):
    """Each answer begins with the tokens given for its sentence (possibly none); then the model goes on."""

    def __init__(self, prefixes: Sequence[Sequence[int]]) -> None:
        self.prefixes = [list(prefix) for prefix in prefixes]

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        one_for_each(self.prefixes, first, "forced prefixes")
        longest = max((len(prefix) for prefix in self.prefixes), default=0)
        padded = [prefix + [NONE] * (longest - len(prefix)) for prefix in self.prefixes]
        return first.new_tensor(padded).view(len(first), longest)

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        time = history.shape[1]
        if time >= state.shape[1]:
            return log_probs
        token = state[:, time, None]
        others = torch.arange(log_probs.shape[1], device=log_probs.device) != token
        return log_probs.masked_fill(others & (token != NONE), IMPOSSIBLE)


class NoRepeat(Constraint):
    """No n-gram of tokens occurs twice in an answer (Paulus et al. 2018, section 2.5)."""

    def __init__(self, length: int) -> None:
        self.length = length

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        time = history.shape[1]
        if time < self.length:
            return log_probs
        seen = history.unfold(1, self.length, 1)
        current = history[:, None, time - self.length + 1 :]
        row, place = (seen[:, :, :-1] == current).all(2).nonzero(as_tuple=True)
        log_probs = log_probs.clone()
        log_probs[row, seen[row, place, -1]] = IMPOSSIBLE
        return log_probs


class RepetitionPenalty(Constraint):
    """Tokens of the answer become less likely the second time (Keskar et al. 2019, section 4.1).

    There the logits are divided; log-probabilities are never positive, so here they are multiplied.
    """

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        return log_probs.scatter(1, history, log_probs.gather(1, history) * self.factor)


class ForbiddenWords(Constraint):
    """For each sentence, token sequences that must not occur in its answer.

    A word that can be tokenised in several ways is several sequences. Sequences are matched as tokens:
    whether they begin and end with a word is for the caller to see to.
    """

    def __init__(self, forbidden: Sequence[Sequence[Sequence[int]]]) -> None:
        self.forbidden = [[list(phrase) for phrase in phrases] for phrases in forbidden]
        refuse_empty(phrase for phrases in self.forbidden for phrase in phrases)

    def start(self, first: Int[Tensor, "sentences"]) -> State:
        """What comes before each last token, aligned to the right, and the last token itself."""
        one_for_each(self.forbidden, first, "lists of forbidden words")
        most = max((len(phrases) for phrases in self.forbidden), default=0)
        longest = max((len(phrase) for phrases in self.forbidden for phrase in phrases), default=1)
        before = first.new_full((len(first), most, longest - 1), NONE)
        last = first.new_full((len(first), most), NONE)
        for row, phrases in enumerate(self.forbidden):
            for column, phrase in enumerate(phrases):
                before[row, column, longest - len(phrase) :] = first.new_tensor(phrase[:-1])
                last[row, column] = phrase[-1]
        return before, last

    def restrict(
        self,
        log_probs: Float[Tensor, "rows vocabulary"],
        history: Int[Tensor, "rows time"],
        state: State,
    ) -> Float[Tensor, "rows vocabulary"]:
        before, last = state
        recent = ending(history, before.shape[2])[:, None, :]
        complete = ((before == NONE) | (before == recent)).all(2) & (last != NONE)
        row, column = complete.nonzero(as_tuple=True)
        log_probs = log_probs.clone()
        log_probs[row, last[row, column]] = IMPOSSIBLE
        return log_probs


def ending(history: Int[Tensor, "rows time"], length: int) -> Int[Tensor, "rows length"]:
    """The last ``length`` tokens, filled up in front with ``NONE``."""
    missing = max(0, length - history.shape[1])
    nothing = history.new_full((len(history), missing), NONE)
    return torch.cat((nothing, history[:, history.shape[1] - (length - missing) :]), dim=1)


def one_for_each(given: Sequence[object], first: Int[Tensor, "sentences"], what: str) -> None:
    if len(given) != len(first):
        raise UsageError(f"{what}: given for {len(given)} sentences, but there are {len(first)}")


def refuse_empty(phrases: Iterable[Sequence[object]]) -> None:
    if not all(phrases):
        raise UsageError("a forbidden or required word has no tokens")


class ConstraintSpec(Spec):
    """Constraints that are the same for every sentence and can therefore stand in a search's spec."""

    kinds: ClassVar[dict[str, str]] = {
        "no_repeat": "regard.search.constraints:NoRepeatSpec",
        "repetition_penalty": "regard.search.constraints:RepetitionPenaltySpec",
    }

    def build(self) -> Constraint:
        raise NotImplementedError


class NoRepeatSpec(ConstraintSpec):
    length: int = Field(3, ge=1)
    """No sequence of this many tokens occurs twice in an answer."""

    def build(self) -> NoRepeat:
        return NoRepeat(self.length)


class RepetitionPenaltySpec(ConstraintSpec):
    factor: float = Field(1.2, ge=1)
    """What the log-probability of a token that already occurred is multiplied by; 1 changes nothing."""

    def build(self) -> RepetitionPenalty:
        return RepetitionPenalty(self.factor)
