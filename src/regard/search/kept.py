"""The whole search kept for display: every hypothesis tried, its score, its parent and its fate."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.errors import UsageError

Status: TypeAlias = Literal["pruned", "kept", "finished"]
STATUSES: tuple[Status, ...] = ("pruned", "kept", "finished")
PRUNED, KEPT, FINISHED = range(3)


@dataclass(frozen=True, slots=True)
class Expansion:
    """One token tried after one hypothesis."""

    node: int
    """Its number within the sentence; the begin is node 0."""
    parent: int
    step: int
    """1 for the first token."""
    token: int
    log_prob: float
    """The model's, of this token."""
    cumulative: float
    """Sum of log-probabilities from the begin to here, after penalties."""
    score: float
    """``cumulative`` after length normalisation."""
    status: Status
    """kept: the search went on with it; finished: it ended here; pruned: others were better."""


@dataclass(slots=True)
class KeptSentence:
    expansions: list[Expansion] = field(default_factory=list)
    """``expansions[i]`` is node i + 1."""
    words: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    """For each node that was looked at further: the most probable next tokens and their log-probabilities."""

    @property
    def best(self) -> Expansion | None:
        """The finished hypothesis with the best score."""
        finished = [one for one in self.expansions if one.status == "finished"]
        return max(finished, key=lambda one: one.score, default=None)

    def path(self, node: int) -> list[Expansion]:
        """From the first token to ``node``."""
        path: list[Expansion] = []
        while node > 0:
            path.append(self.expansions[node - 1])
            node = path[-1].parent
        return path[::-1]

    def to_dict(self) -> dict[str, Any]:
        words = {str(node): [list(pair) for pair in pairs] for node, pairs in self.words.items()}
        return {"expansions": [asdict(one) for one in self.expansions], "words": words}


class Expanded(NamedTuple):
    """One step of a search as it reports it; ``parent`` and ``node`` are numbers in its trellis."""

    parent: Int[Tensor, "sentences count"]
    token: Int[Tensor, "sentences count"]
    log_prob: Float[Tensor, "sentences count"]
    cumulative: Float[Tensor, "sentences count"]
    score: Float[Tensor, "sentences count"]
    status: Int[Tensor, "sentences count"]
    node: Int[Tensor, "sentences count"]
    """Of those that are kept; anything for the others."""


class Kept:
    """Hand one to a search, then read ``sentences``, by sentence number. It never changes what is found."""

    def __init__(self, words: int = 5) -> None:
        self.most_words = words
        self.sentences: dict[int, KeptSentence] = {}
        self._nodes: list[dict[int, int]] = []
        self._numbers: list[int] = []

    def to_dict(self) -> dict[str, Any]:
        return {str(number): sentence.to_dict() for number, sentence in self.sentences.items()}

    def open(self, numbers: list[int]) -> None:
        """Begin a batch; its sentence i starts at trellis node i."""
        for number in numbers:
            if number in self.sentences:
                raise UsageError(f"the search of sentence {number} is kept already: number sentences apart")
            self.sentences[number] = KeptSentence()
        self._numbers = numbers
        self._nodes = [{begin: 0} for begin in range(len(numbers))]

    def look(
        self,
        sentence: Int[Tensor, "rows"],
        node: Int[Tensor, "rows"],
        log_probs: Float[Tensor, "rows vocabulary"],
        alive: Bool[Tensor, "rows"],
    ) -> None:
        """Keep the most probable next tokens of each live hypothesis."""
        tops = log_probs.topk(min(self.most_words, log_probs.shape[1]), dim=1)
        columns = (sentence, node, tops.indices, tops.values, alive)
        for one, at, tokens, values, real in zip(*(column.tolist() for column in columns), strict=True):
            if real:
                kept = self.sentences[self._numbers[one]]
                kept.words[self._nodes[one][at]] = list(zip(tokens, values, strict=True))

    def expand(self, step: int, sentence: Int[Tensor, "sentences"], expanded: Expanded) -> None:
        """Keep what was tried at ``step`` (1 for the first); impossible continuations are left out."""
        columns = [column.tolist() for column in expanded]
        for one, *candidates in zip(sentence.tolist(), *columns, strict=True):
            kept, nodes = self.sentences[self._numbers[one]].expansions, self._nodes[one]
            for parent, token, log_prob, cumulative, score, status, node in zip(*candidates, strict=True):
                if cumulative == float("-inf"):
                    continue
                number = len(kept) + 1
                if status == KEPT:
                    nodes[node] = number
                kept.append(
                    Expansion(
                        number, nodes[parent], step, token, log_prob, cumulative, score, STATUSES[status]
                    )
                )


def draw(tree: KeptSentence, name_of: Callable[[int], str], pruned: bool = False) -> str:
    """The tree of a sentence as text: each token with its probability, each branch with its score.

    Tokens without alternatives share a line. Ends: ``■`` finished, ``…`` not gone on with, ``×`` pruned
    (shown when ``pruned``).
    """
    best = tree.best
    children: dict[int, list[Expansion]] = {}
    for one in tree.expansions:
        if pruned or one.status != "pruned":
            children.setdefault(one.parent, []).append(one)

    lines = ["●"]
    waiting = [(one, "", one is children[0][-1]) for one in reversed(children.get(0, []))]
    while waiting:
        one, margin, last = waiting.pop()
        words = [_word(one, name_of)]
        while one.status == "kept" and len(children.get(one.node, ())) == 1:
            one = children[one.node][0]
            words.append(_word(one, name_of))
        after = children.get(one.node, [])
        mark = {"finished": ["■"], "pruned": ["×"], "kept": [] if after else ["…"]}[one.status]
        note = ["best"] if one is best else []
        branch = "└─" if last else "├─"
        lines.append(margin + " ".join([branch, *words, *mark, f"{one.score:.3f}", *note]))
        inner = margin + ("   " if last else "│  ")
        waiting += [(child, inner, child is after[-1]) for child in reversed(after)]
    return "\n".join(lines)


def _word(one: Expansion, name_of: Callable[[int], str]) -> str:
    return f"{name_of(one.token)}·{math.exp(one.log_prob):.2f}"
