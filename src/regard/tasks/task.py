"""The family of tasks: what a trained model is asked to do, lines in, answers out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.core.errors import UsageError
from regard.core.spec import Plain, Spec
from regard.core.state import State
from regard.data.data import DataSpec
from regard.data.layouts import Reading
from regard.data.lexicon import Lexicon
from regard.parts.pooling import SummingUpSpec
from regard.search.search import SearchSpec
from regard.tasks.answers import Answer, Candidate, Detail, Scored
from regard.tasks.engine import NO_ENGINE, Engines

Item = TypeVar("Item")
WINDOW = 2048
"""Lines that are sorted by length and answered together."""


@dataclass(frozen=True)
class Wishes:
    """What a person asks of every answer, in words."""

    prefix: str = ""
    """How it must begin."""
    forbid: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    """Where one of these is written, the answer ends before it."""
    begin: tuple[int, ...] = ()
    """Tokens it must begin with, for those who know a search from inside; beside ``prefix`` they win."""


NO_WISHES = Wishes()


@runtime_checkable
class Audience(Protocol):
    """Those who wait while answers are written; texts are known by their place in what was asked."""

    listens: bool
    """Whether pieces are wanted at all: then nobody answers who tells only the whole."""

    def hear(self, place: int, piece: str) -> None:
        """Some more of an answer. What comes piece by piece may begin late, or never, but keeps its order."""

    def left(self, place: int) -> bool:
        """Nobody waits for this one any more: its answer may end anywhere."""


class Asked(NamedTuple):
    """What a person wants answered, and how."""

    texts: Sequence[str]
    wishes: Wishes = NO_WISHES
    first_line: int = 1
    """Where the texts begin in the whole input."""
    truncate: bool = False
    """Cut what is too long instead of refusing it."""
    keep: bool = False
    """Keep the whole search."""
    numbers: Sequence[int] | None = None
    """By which samples are drawn; where the texts stand in the whole input, counted from 0, by default."""
    audience: Audience | None = None
    detail: Detail = "tokens"
    share: float = 1.0
    """Of those who compute, what these texts may have: the others are wanted elsewhere meanwhile."""

    def number(self, place: int) -> int:
        return self.first_line + place - 1 if self.numbers is None else self.numbers[place]


class Means(NamedTuple):
    """What a task is done with, each handed in."""

    model: nn.Module
    lexicon: Lexicon
    data: DataSpec
    """How the lines of this system are read."""
    search: SearchSpec
    device: torch.device
    engines: Engines = NO_ENGINE
    """Who may answer instead, where it can."""


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, the most important one first."""

    scores: dict[str, float]
    signature: str
    examples: int

    @property
    def metric(self) -> str:
        return next(iter(self.scores))

    @property
    def value(self) -> float:
        return self.scores[self.metric]

    def to_dict(self) -> dict[str, Plain]:
        return {
            "metric": self.metric,
            "value": self.value,
            "scores": dict[str, Plain](self.scores),
            "signature": self.signature,
            "examples": self.examples,
        }


class Written(NamedTuple):
    """Everything needed to see a model write one answer again."""

    start: Callable[[], State]
    """Reads what is to be answered; gives the state before the first token."""
    read: list[str]
    """Pieces of what was read; empty where nothing is read first."""
    ids: list[int]
    """A first token, those that were written, and the end unless it was cut off; none where an answer is
    not written token by token."""
    pieces: list[str]
    """Of what was written, without first and last."""
    first: str | None = None
    """The piece that the first token is; None where it is a mark and no text."""
    log_probs: tuple[float, ...] = ()
    """Of an answer that is not written token by token."""


class Task(ABC):
    """A model ready to answer. Nothing of a request is kept between calls."""

    begins: ClassVar[bool] = False
    """An empty text has an answer too."""
    needs_answer: ClassVar[bool] = True
    """A text alone has no probability: it is that of an answer to it."""

    def refusal(self, wishes: Wishes, keep: bool) -> str | None:
        """Why no engine answers what is asked; None where one does."""
        return "there is no other way to do this task"

    def refusal_to_evaluate(self) -> str | None:
        """Why no engine has a part in evaluating; None where one has."""
        return self.refusal(NO_WISHES, keep=False)

    def asks(self, text: str) -> bool:
        """Whether ``text`` has something to answer, or can only be read."""
        return True

    @abstractmethod
    def answer(self, asked: Asked) -> list[Answer]:
        """One answer per text."""

    @abstractmethod
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """How probable given texts are, token by token."""

    @abstractmethod
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """How good the model is on these examples."""

    @abstractmethod
    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        """How ``target`` (a text, or what a search found, token by token), or the model's own answer, is
        written."""

    def reading(self, text: str) -> Written:
        """How ``text`` is read, with as little written as can be."""
        return self.written(text)

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What tokens of an answer look like."""

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        """Texts as rows of what the model reads, for who wants to know what it made of them."""
        raise UsageError("what this model reads is not a text by itself: it has no vectors of texts")

    def pieces_of(self, text: str, wishes: Wishes = NO_WISHES) -> Iterator[str]:
        """The answer to one text, bit by bit where it can be shown before it is complete."""
        yield self.answer(Asked([text], wishes))[0].text

    def shown(self, source: str, answer: str) -> str:
        """An answer as a person wants to read it."""
        return answer

    def stream(
        self,
        texts: Iterable[str],
        wishes: Wishes = NO_WISHES,
        truncate: bool = False,
        keep: bool = False,
        window: int = WINDOW,
        detail: Detail = "tokens",
    ) -> Iterator[Answer]:
        """Answers in order, in memory that does not grow with the input."""
        line = 1
        for some in windows(texts, window):
            yield from self.answer(Asked(some, wishes, line, truncate, keep, detail=detail))
            line += len(some)


class TaskSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "transduction": "regard.tasks.transduction:TransductionSpec",
        "continuation": "regard.tasks.continuation:ContinuationSpec",
        "blanks": "regard.tasks.blanks:BlanksSpec",
        "classification": "regard.tasks.classification:ClassificationSpec",
        "similarity": "regard.tasks.classification:SimilaritySpec",
        "detecting": "regard.tasks.detecting:DetectingSpec",
        "two_sided": "regard.tasks.two_sided:TwoSidedSpec",
        "filling": "regard.tasks.filling:FillingSpec",
        "tagging": "regard.tasks.tagging:TaggingSpec",
        "word_vectors": "regard.tasks.word_vectors:WordVectorsTaskSpec",
        "quoting": "regard.tasks.quoting:QuotingSpec",
        "choosing": "regard.tasks.choosing:ChoosingSpec",
        "vectors": "regard.tasks.vectors:VectorsSpec",
    }
    unsaid: ClassVar[str | None] = "transduction"

    def build(self, means: Means) -> Task:
        raise NotImplementedError

    def summing_up(self) -> SummingUpSpec:
        """How vectors of whole texts are made where nobody asks for another way."""
        return SummingUpSpec()

    def together(self, others: Sequence["TaskSpec"]) -> "TaskSpec":
        """The task of several models that are asked as one."""
        return self


def windows(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some
