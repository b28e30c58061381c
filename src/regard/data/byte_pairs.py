"""Byte-pair encoding, readable: learn merges step by step, and apply them with or without dropout.

Learning follows Sennrich et al. (2016), algorithm 1; dropout follows Provilkov et al. (2020), algorithm 1.
Real vocabularies are learned by the ``tokenizers`` library. Dropout runs here, because that library cannot
seed its own.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from regard.data.randomness import Drops

END_OF_WORD = "</w>"

Symbols: TypeAlias = tuple[str, ...]


class MergeStep(NamedTuple):
    """One step of learning: which pair, how often it stood there, and the words afterwards."""

    pair: tuple[str, str]
    frequency: int
    words: dict[Symbols, int]


def merge_steps(words: Mapping[str, int], merges: int, end: str = END_OF_WORD) -> list[MergeStep]:
    """Learn up to ``merges`` merges from word counts; of equally frequent pairs the one seen first wins."""
    state: dict[Symbols, int] = {(*word, end): count for word, count in words.items()}
    steps: list[MergeStep] = []
    while len(steps) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for symbols, count in state.items():
            for pair in pairwise(symbols):
                pairs[pair] += count
        if not pairs:
            break
        pair, frequency = max(pairs.items(), key=lambda item: item[1])
        state = {join_pair(symbols, pair): count for symbols, count in state.items()}
        steps.append(MergeStep(pair, frequency, state))
    return steps


def join_pair(symbols: Symbols, pair: tuple[str, str]) -> Symbols:
    """Every occurrence of ``pair`` as one symbol, from left to right."""
    joined: list[str] = []
    for symbol in symbols:
        if joined and (joined[-1], symbol) == pair:
            joined[-1] += symbol
        else:
            joined.append(symbol)
    return tuple(joined)


class Cut(NamedTuple):
    """A word at one moment of being put together: its pieces, and the pair that was just joined."""

    symbols: Symbols
    pair: tuple[str, str] | None = None
    rank: int | None = None
    """When that pair was learned, from 0."""


def cutting(symbols: Symbols, ranks: Mapping[tuple[str, str], int]) -> list[Cut]:
    """From single symbols to pieces, one merge at a time: always the pair that was learned first."""
    cuts = [Cut(symbols)]
    while True:
        found = min(pairwise(cuts[-1].symbols), key=lambda pair: ranks.get(pair, sys.maxsize), default=None)
        if found is None or found not in ranks:
            return cuts
        cuts.append(Cut(join_pair(cuts[-1].symbols, found), found, ranks[found]))


class Merge(NamedTuple):
    """Where a pair stands in the order of learning, and the piece it becomes."""

    rank: int
    piece: int


_NO_MERGE = Merge(sys.maxsize, -1)

MergeTable: TypeAlias = Mapping[tuple[int, int], Merge]


def apply_merges(pieces: Sequence[int], merges: MergeTable, drops: Iterator[bool]) -> list[int]:
    """Merge the earliest-learned pair that is not dropped, until no candidate is left or all are dropped.

    Candidates are asked in order of rank and only until one survives. Dropping each independently and taking
    the best survivor has the same distribution, but needs an answer for every candidate.
    """
    pieces = list(pieces)
    ranks = [merges.get(pair, _NO_MERGE).rank for pair in pairwise(pieces)]
    while True:
        candidates = ranks
        best = min(candidates, default=_NO_MERGE.rank)
        while best != _NO_MERGE.rank and next(drops):
            candidates = candidates.copy()
            candidates[candidates.index(best)] = _NO_MERGE.rank
            best = min(candidates)
        if best == _NO_MERGE.rank:
            return pieces
        place = candidates.index(best)
        pieces[place : place + 2] = [merges[pieces[place], pieces[place + 1]].piece]
        del ranks[place]
        for beside in (place - 1, place):
            if 0 <= beside < len(ranks):
                ranks[beside] = merges.get((pieces[beside], pieces[beside + 1]), _NO_MERGE).rank


class Outcome:
    """What a word becomes if, after drops at ``gaps``, nothing is dropped within ``draws`` answers.

    ``after`` holds the outcomes of a further drop, by how many answers come before it. The result of merging
    depends on the answers alone, so that each way of dropping needs to be worked out only once a word.
    """

    __slots__ = ("after", "draws", "gaps", "pieces")

    def __init__(self, characters: Sequence[int], merges: MergeTable, gaps: tuple[int, ...]) -> None:
        never = _Never()
        self.pieces = tuple(apply_merges(characters, merges, _Replay(gaps, never)))
        self.draws = never.answers
        self.gaps = gaps
        self.after: dict[int, Outcome] = {}


class DroppingWord:
    """A word and the outcomes met so far; ``merge`` draws one."""

    LONGEST, MOST_DROPS = 24, 2
    """Longer words, and more drops in one word, rarely come again: these are worked out each time."""

    __slots__ = ("_characters", "undisturbed")

    def __init__(self, characters: Sequence[int], merges: MergeTable) -> None:
        self._characters = tuple(characters)
        self.undisturbed = Outcome(self._characters, merges, ())

    def merge(self, merges: MergeTable, drops: Drops) -> Sequence[int]:
        outcome = self.undisturbed
        remembered = self.MOST_DROPS if len(self._characters) <= self.LONGEST else 0
        while drops.gap < outcome.draws:
            if len(outcome.gaps) == remembered:
                return apply_merges(self._characters, merges, _Replay(outcome.gaps, drops))
            gap = int(drops.gap)
            following = outcome.after.get(gap)
            if following is None:
                following = Outcome(self._characters, merges, (*outcome.gaps, gap))
                outcome.after[gap] = following
            outcome = following
            drops.gap = drops.next_gap()
        drops.gap -= outcome.draws
        return outcome.pieces


class _Replay:
    """Drops at given gaps, then as another stream says."""

    def __init__(self, gaps: Sequence[int], then: Iterator[bool]) -> None:
        self._gaps, self._then = list(reversed(gaps)), then

    def __iter__(self) -> "_Replay":
        return self

    def __next__(self) -> bool:
        if not self._gaps:
            return next(self._then)
        if self._gaps[-1] == 0:
            self._gaps.pop()
            return True
        self._gaps[-1] -= 1
        return False


class _Never:
    """Drops nothing, and counts how often it was asked."""

    def __init__(self) -> None:
        self.answers = 0

    def __iter__(self) -> "_Never":
        return self

    def __next__(self) -> bool:
        self.answers += 1
        return False
