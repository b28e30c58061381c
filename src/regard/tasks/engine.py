"""Another way to what a search finds: whole searches at once, where going step by step would be slower.

A task asks an engine first and searches for itself what the engine refuses, or gives back unanswered. Both
ways find the same; which programs there are is known above (``engines``).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from regard.search.hypotheses import Hypothesis
from regard.search.search import SearchSpec

if TYPE_CHECKING:
    from regard.tasks.task import Wishes


@runtime_checkable
class Engine(Protocol):
    name: str

    def refusal(self, search: SearchSpec, wishes: "Wishes", keep: bool) -> str | None:
        """Why it cannot do what is asked; None when it can."""

    def describe(self) -> str:
        """Its name, and how it is driven."""

    def search(
        self,
        given: Sequence[Sequence[int]],
        longest: Sequence[int],
        search: SearchSpec,
        detail: bool,
    ) -> list[list[Hypothesis] | None]:
        """The hypotheses for each of ``given``, best first; None for those that must be searched otherwise.

        ``longest`` is the number of steps after which each is cut off. Without ``detail`` probabilities of
        single tokens may be left out.
        """
