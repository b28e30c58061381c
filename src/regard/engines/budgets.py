"""How much an engine is given at once, found out on real work.

Which size of batches is fastest depends on processor, precision and beam: the best of one machine is a tenth
slower than the best of the next. Whoever has much to do is given batches of each size in turn, a few times,
and from then on those that took the least time for a token. Nothing is computed twice for it, and answers do
not depend on it.
"""

from collections.abc import Sequence

from regard.engines.notes import Notes

MANY = 512
"""Rows from which on the time they take tells something about the size of their batches."""
_TRIALS = 2
"""Of each size."""


class Budgets:
    def __init__(self, sizes: Sequence[int], notes: Notes, key: str) -> None:
        """Of these ``sizes`` the first is used where too little is done to find out which is best."""
        self._sizes, self._notes, self._key = tuple(sizes), notes, key
        self._taken: dict[int, dict[int, list[float]]] = {}
        self._best: dict[int, int | None] = {}

    def known(self, beam: int) -> bool:
        """Nothing is left to find out for beams of this size."""
        return len(self._sizes) == 1 or self._chosen(beam) is not None

    def of(self, beam: int, rows: int) -> int:
        """Tokens that are given together, of all hypotheses, the next time so many rows are searched."""
        if (best := self._chosen(beam)) is not None:
            return best
        if not self._tells(rows):
            return self._sizes[0]
        taken = self._taken.get(beam, {})
        return min(self._sizes, key=lambda size: len(taken.get(size, ())))

    def took(self, beam: int, budget: int, rows: int, tokens: int, seconds: float) -> None:
        """So long it took to search so many rows of so many tokens with what ``of`` had said."""
        if not self._tells(rows) or self.known(beam):
            return
        taken = self._taken.setdefault(beam, {size: [] for size in self._sizes})
        taken[budget].append(seconds / tokens)
        if all(len(some) >= _TRIALS for some in taken.values()):
            best = self._best[beam] = min(taken, key=lambda size: min(taken[size]))
            self._notes.keep(self._name(beam), best)

    def _tells(self, rows: int) -> bool:
        return rows >= MANY and len(self._sizes) > 1

    def _chosen(self, beam: int) -> int | None:
        if beam not in self._best:  # looked up once: who asks line by line asks often
            noted = self._notes.of(self._name(beam)) if len(self._sizes) > 1 else None
            self._best[beam] = noted if noted in self._sizes else None
        return self._best[beam]

    def _name(self, beam: int) -> str:
        return f"{self._key}, batches for beams of {beam}"
