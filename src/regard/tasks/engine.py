"""Another way to what our own steps find: whole searches, or the states of whole batches, at once.

A task asks an engine first and does for itself what the engine refuses, or gives back unanswered. Both
ways find the same; which programs there are is known above (``engines``).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.core.sequences import Tokens
from regard.search.hypotheses import Hypothesis
from regard.search.search import SearchSpec
from regard.tasks.answers import Detail

if TYPE_CHECKING:
    from regard.tasks.task import Wishes

Rows = TypeVar("Rows")
LAST = -1
"""The layer that everything is read off unless someone asks for another."""


@runtime_checkable
class Engine(Protocol):
    name: str

    def describe(self, search: SearchSpec) -> str:
        """Its name, and how it is driven where there is something to search."""


@runtime_checkable
class SearchingEngine(Engine, Protocol):
    """Writes whole answers."""

    def refusal(self, search: SearchSpec, wishes: "Wishes", keep: bool) -> str | None:
        """Why it cannot search as is asked; None when it can."""

    def search(
        self,
        given: Sequence[Sequence[int]],
        longest: Sequence[int],
        search: SearchSpec,
        detail: Detail,
        share: float = 1.0,
    ) -> Iterator[tuple[int, list[Hypothesis] | None]]:
        """The hypotheses for each of ``given`` by its place, best first, as soon as they are found; None for
        those that must be searched otherwise.

        ``longest`` is the number of steps after which each is cut off. What is not asked for in ``detail``
        may be left out. Of what computes they may have ``share``: who asks has others searched beside them.
        """


@runtime_checkable
class ReadingEngine(Engine, Protocol):
    """Reads whole batches."""

    budget: int
    """Padded tokens of a batch that it reads fastest."""

    def refusal(self, layer: int | None) -> str | None:
        """Why it does not give the states after this layer (None: after all of them); None when it does."""

    def read(self, batches: Iterable[Tokens]) -> Iterator[Float[Tensor, "batch time width"]]:
        """The states after the last layer, batch by batch; it may have read a few ahead."""


class Engines(NamedTuple):
    """Who is asked before our own steps: None where nobody is."""

    searching: SearchingEngine | None = None
    reading: ReadingEngine | None = None
    reason: str = "there is no other"
    """Why nobody is asked for what is None."""

    @property
    def engine(self) -> Engine | None:
        """Whichever there is: a model that writes is searched, one that reads is read."""
        return self.searching or self.reading

    def refusal_to_search(self, search: SearchSpec, wishes: "Wishes", keep: bool) -> str | None:
        """Why our own steps search; None where another does."""
        return self.reason if self.searching is None else self.searching.refusal(search, wishes, keep)

    def refusal_to_read(self, layer: int | None) -> str | None:
        """Why our own steps read; None where another does."""
        return self.reason if self.reading is None else self.reading.refusal(layer)


NO_ENGINE = Engines()


def states_of(
    engine: ReadingEngine, batches: Iterable[tuple[Rows, Tokens]]
) -> Iterator[tuple[Rows, Tokens, Float[Tensor, "batch time width"]]]:
    """Batches with what was read, whoever they are of."""
    told, given = tee(batches)
    for (rows, tokens), states in zip(told, engine.read(tokens for _, tokens in given), strict=True):
        yield rows, tokens, states


def answering(engine: Engine | None, refusal: str | None) -> str:
    """The name of who answers."""
    return "torch" if engine is None or refusal else engine.name
