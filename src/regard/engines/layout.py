"""How an engine is driven on this machine: precision, and cores as workers or as threads of one worker.

Which is fastest depends on processor, model and beam, so it is measured once, in turns, and written down
beside the converted model.
"""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import torch

from regard.core.processor import processor
from regard.engines.notes import Notes

Precision = Literal["auto", "float32", "int8"]
_ROUNDS = 3
_FEWER_DIGITS, _MORE_THREADS = 1.05, 1.05
"""Times as fast that a layout must be to be worth it."""


class Layout(NamedTuple):
    precision: str
    workers: int
    """Batches side by side."""
    threads: int
    """Of each."""

    def options(self) -> dict[str, Any]:
        return {
            "device": "cpu",
            "compute_type": self.precision,
            "inter_threads": self.workers,
            "intra_threads": self.threads,
            "max_queued_batches": -1,
        }

    def describe(self) -> str:
        return f"{self.precision}, {self.workers} × {self.threads} threads"


def for_states(precision: Precision, cores: int | None = None) -> tuple[Layout, Layout]:
    """For many batches and for one. Vectors lose digits only where that is asked for, not to be faster."""
    cores = torch.get_num_threads() if cores is None else cores
    digits = "int8" if precision == "int8" else "float32"
    return Layout(digits, cores, 1), Layout(digits, 1, cores)


class Layouts:
    """The layouts to choose from, and which are best for many lines and for one, for every size of beams."""

    def __init__(
        self,
        precision: Precision,
        notes: Notes,
        cores: int | None = None,
        large: bool = False,
        manner: str = "",
    ) -> None:
        """Until it is known, one line of a ``large`` model is given all threads: reading its weights takes
        longest, and they share that. Lines of a small one go to the same worker, one by one: what it needs
        stays near its core. What is noted holds for one ``manner`` of asking."""
        cores = torch.get_num_threads() if cores is None else cores
        precisions = ("float32", "int8") if precision == "auto" else (precision,)
        # Many batches are served best by workers of one thread each; one line may gain by more threads.
        self.bulk = [Layout(one, cores, 1) for one in precisions]
        self.alone = [Layout(one, 1, threads) for one in precisions for threads in sorted({1, cores})]
        self._guessed = Best(self.bulk[0], Layout(precisions[0], 1, cores if large else 1))
        self.notes = notes
        self.key = ", ".join(filter(None, (machine(), f"{cores} threads", precision, manner)))
        self._best: dict[int, Best | None] = {}

    def known(self, beam: int) -> bool:
        """Nothing is left to find out for beams of this size."""
        return len(self.alone) == 1 or self._noted(beam) is not None

    def chosen(self, beam: int, bulk: bool) -> Layout:
        best = self._noted(beam) or self._guessed
        return best.bulk if bulk else best.alone

    def in_use(self) -> set[Layout]:
        """Whatever was chosen, and what stands in for several threads."""
        found = {layout for best in self._best.values() if best is not None for layout in best}
        return found | {layout._replace(threads=1) for layout in found}

    def measure(self, beam: int, bulk: Callable[[Layout], None], alone: Callable[[Layout], None]) -> None:
        """Try every layout in turns, and keep the fastest for each use."""
        best = self._best[beam] = Best(_fastest(self.bulk, bulk), _fastest(self.alone, alone))
        self.notes.keep(self._name(beam), [list(one) for one in best])

    def _noted(self, beam: int) -> "Best | None":
        if beam not in self._best:  # looked up once: who asks line by line asks often
            try:
                best = Best(*(Layout(*one) for one in self.notes.of(self._name(beam))))
            except (TypeError, ValueError):
                self._best[beam] = None
            else:
                self._best[beam] = best if best.bulk in self.bulk and best.alone in self.alone else None
        return self._best[beam]

    def _name(self, beam: int) -> str:
        return f"{self.key}, layouts for beams of {beam}"


class Best(NamedTuple):
    bulk: Layout
    """For many lines."""
    alone: Layout
    """For one."""


def _fastest(options: Iterable[Layout], use: Callable[[Layout], None]) -> Layout:
    seconds: dict[Layout, list[float]] = {layout: [] for layout in options}
    if len(seconds) == 1:
        return next(iter(seconds))
    for _ in range(_ROUNDS):
        for layout, taken in seconds.items():
            begin = time.perf_counter()
            use(layout)
            taken.append(time.perf_counter() - begin)
    return min(seconds, key=lambda layout: min(seconds[layout]) * _handicap(layout))


def _handicap(layout: Layout) -> float:
    digits = 1.0 if layout.precision == "float32" else _FEWER_DIGITS
    return digits * (_MORE_THREADS if layout.threads > 1 else 1.0)


def machine() -> str:
    """What kind of machine this is: notes made on another do not hold here."""
    return f"{processor().name}, {os.cpu_count()} cores"
