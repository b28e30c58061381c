"""Samples over time: how a run answers a few validation examples at every validation, for people to read."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.apps.session import Run
from regard.core.errors import RegardError
from regard.search.greedy import GreedySpec
from regard.training.events import Validated, Watcher

FILE = "samples.jsonl"
COUNT = 4


class Samples(Watcher):
    """Appends to ``samples.jsonl``, one answer a line. It draws nothing: training goes on as without."""

    def __init__(self, run: Run, examples: Sequence[tuple[str, ...]]) -> None:
        self.run, self.examples = run, examples[:COUNT]
        self.path = run.path / FILE

    def on_validation(self, event: Validated) -> None:
        learning = self.run.model.training
        self.run.model.eval()
        try:
            lines = self._lines(event)
        except RegardError:  # an example that cannot be answered is no reason to stop learning
            lines = []
        finally:
            self.run.model.train(learning)
        with (
            suppress(OSError),
            self.path.open("a", encoding="utf-8") as file,
        ):  # nor is a full disk: the log tells
            file.writelines(lines)

    def _lines(self, event: Validated) -> list[str]:
        search = GreedySpec(longest_extra=24)
        answers = self.run.answers([example[0] for example in self.examples], search, truncate=True)
        return [
            json.dumps(
                {
                    "step": event.step,
                    "variant": event.variant,
                    "source": answer.source,
                    "reference": example[-1] if len(example) > 1 else None,
                    "answer": answer.text,
                },
                ensure_ascii=False,
            )
            + "\n"
            for example, answer in zip(self.examples, answers, strict=True)
        ]


def read_samples(folder: Path) -> list[dict[str, Any]]:
    """The last word on every step: what was done twice after a kill is told once."""
    found = {(line.get("step"), line.get("source")): line for line in read_lines(folder / FILE)}
    return list(found.values())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """JSON objects, one a line; a line that was cut short is passed over."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
