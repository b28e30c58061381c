"""What a run can be asked to do with texts of several requests at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from regard.apps.serving.batching import Row
from regard.apps.session import Run
from regard.inspection.alignment import alignment
from regard.inspection.trace import Trace
from regard.search.search import SearchSpec
from regard.tasks.answers import Answer, Detail, Scored
from regard.tasks.task import NO_WISHES, Asked, Wishes


@dataclass(frozen=True)
class Answering:
    run: Run
    search: SearchSpec
    wishes: Wishes = NO_WISHES
    truncate: bool = False
    keep: bool = False
    detail: Detail = "tokens"
    streams: bool = False
    """Somebody listens while answers are written."""

    @cached_property
    def elsewhere(self) -> bool:
        """An engine searches, unless it is to be heard while it does."""
        heard = self.streams and self.search.steady
        return not heard and self.run.task(self.search).refusal(self.wishes, self.keep) is None

    def do(self, rows: Sequence[Row], share: float) -> list[Answer]:
        if self.keep and len({row.number for row in rows}) < len(rows):  # kept searches go by their numbers
            return [answer for row in rows for answer in self.do([row], share)]
        line = rows[0].place + 1 if len(rows) == 1 else 1
        return self.run.task(self.search).answer(
            Asked(
                [row.text for row in rows],
                self.wishes,
                line,
                self.truncate,
                self.keep,
                [row.number for row in rows],
                _Everyone(rows, self.streams),
                self.detail,
                share,
            )
        )


class _Everyone:
    """Those who wait for the answers of a batch, whichever request they belong to."""

    def __init__(self, rows: Sequence[Row], listens: bool) -> None:
        self.rows, self.listens = rows, listens

    def hear(self, place: int, piece: str) -> None:
        row = self.rows[place]
        if row.job.hear is not None and not row.job.left:
            row.job.hear(row.place, piece)

    def left(self, place: int) -> bool:
        return self.rows[place].job.left


@dataclass(frozen=True)
class Scoring:
    run: Run
    truncate: bool = False

    elsewhere: ClassVar[bool] = False

    def do(self, rows: Sequence[Row], share: float) -> list[Scored]:
        return list(self.run.score([(row.text,) for row in rows], self.truncate))


@dataclass(frozen=True)
class Embedding:
    run: Run

    elsewhere: ClassVar[bool] = False

    def do(self, rows: Sequence[Row], share: float) -> list[np.ndarray]:
        return list(self.run.embed([row.text for row in rows]))


@dataclass(frozen=True)
class Looking:
    """What the model looked at while it wrote its answers."""

    run: Run
    targets: tuple[str, ...]
    whole: bool
    """The trace itself, not only which source token each prediction rests on."""

    elsewhere: ClassVar[bool] = False

    def do(self, rows: Sequence[Row], share: float) -> list[Any]:
        return [self._look(self.run.trace(row.text, self.targets[row.place])) for row in rows]

    def _look(self, trace: Trace) -> Any:
        found = alignment(trace)
        aligned = None if found is None else found.round(4).tolist()
        return aligned, trace.to_dict("uint8") if self.whole else None
