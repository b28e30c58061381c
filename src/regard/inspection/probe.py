"""Probes: a template with alternatives, every way to fill it run through a model, and what it changes.

    The {doctor,nurse} said that {he,she} was late.

The last slot is the contrast: for every choice of the others, differences are to its first alternative.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.core.errors import UsageError
from regard.tasks.answers import Scored
from regard.tasks.task import Asked, Task

MOST = 400
_SLOT = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Template:
    """A text with slots; a tab parts what is read from what is written, or a text from its class."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UsageError(
                "there is no template: write one, such as  The {doctor,nurse} said that {he,she} …"
            )
        if self.text.count("\t") > 1:
            raise UsageError("a template has at most one tab: what is read, and what is written")
        if not self.slots:
            raise UsageError("the template has no slot: write alternatives as {he,she}")
        for slot in self.slots:
            if len(slot) < 2:
                raise UsageError(
                    f"the slot {{{','.join(slot)}}} leaves no choice: give two alternatives or more"
                )
        if self.size > MOST:
            raise UsageError(f"the template can be filled in {self.size:,} ways; up to {MOST} are run")

    @property
    def slots(self) -> list[list[str]]:
        return [[choice.strip() for choice in found.split(",")] for found in _SLOT.findall(self.text)]

    @property
    def size(self) -> int:
        size = 1
        for slot in self.slots:
            size *= len(slot)
        return size

    def filled(self) -> list[tuple[tuple[str, ...], str]]:
        """Every choice, and the text with it."""
        texts = []
        for choice in itertools.product(*self.slots):
            given = iter(choice)
            texts.append((choice, _SLOT.sub(lambda _, given=given: next(given), self.text)))  # type: ignore[misc]
        return texts


def probe(task: Task, template: Template) -> dict[str, Any]:
    """How probable every filled template is, and how much more than with the first alternative."""
    filled = template.filled()
    scored = _scored(task, [text for _, text in filled])
    contrast = len(template.slots[-1])
    rows = []
    for number, ((choice, text), found) in enumerate(zip(filled, scored, strict=True)):
        first = scored[number - number % contrast]
        rows.append(
            {
                "choice": list(choice),
                "text": text,
                "log_prob": found.log_prob,
                "difference": found.log_prob - first.log_prob,
                "pieces": found.pieces,
                "token_log_probs": found.token_log_probs,
            }
        )
    return {
        "template": template.text,
        "slots": template.slots,
        "rows": rows,
        "answers": _answers(task, filled),
    }


def _scored(task: Task, texts: Sequence[str]) -> list[Scored]:
    """A text that asks for something without giving an answer is judged by the model's own answer."""
    records = [tuple(text.split("\t")) for text in texts]
    if all(len(record) == 1 for record in records) and task.needs_answer:
        answers = task.answer(Asked([record[0] for record in records]))
        records = [(record[0], answer.text) for record, answer in zip(records, answers, strict=True)]
    return task.score(records)


def _answers(task: Task, filled: Sequence[tuple[tuple[str, ...], str]]) -> list[dict[str, Any]]:
    """Where templates ask (a gap, a class), the most probable answers."""
    texts = [text.split("\t")[0] for _, text in filled]
    if not all(task.asks(text) for text in texts) or task.begins:
        return []
    return [
        {"text": answer.text, "candidates": [[one.text, one.log_prob] for one in answer.candidates]}
        for answer in task.answer(Asked(texts))
    ]
