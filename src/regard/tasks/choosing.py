"""Which of several choices is right; on a line there are tabs between what is given and each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.data.choices import ChoicesSpec, Question
from regard.data.examples import tokens_of
from regard.data.layouts import Reading
from regard.data.tokenizers import Tokenizer
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.classification import Judge, judged
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written


class ChoosingSpec(TaskSpec):
    budget: int = Field(default=4096, ge=1)
    """Padded tokens that are read together."""

    def build(self, means: Means) -> "Choosing":
        return Choosing(
            cast(Judge, means.model),
            means.lexicon["text"],
            cast(ChoicesSpec, means.data),
            means.device,
            means.search.answers,
            self.budget,
        )


@dataclass
class Choosing(Task):
    model: Judge
    tokenizer: Tokenizer
    data: ChoicesSpec
    device: torch.device
    best: int
    budget: int

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The most probable choices of every question, each with its number."""
        questions = self._questions(asked.texts, asked.first_line)
        rows = self.data.rows_of(self.tokenizer, questions)
        return [
            Answer(text, self.tokenizer.pieces(own[0].ids), self._candidates(question, log_probs))
            for text, question, own, log_probs in zip(
                asked.texts, questions, rows, self._log_probs(rows), strict=True
            )
        ]

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p(choice | question)."""
        questions = self._questions([record[0] for record in records], first_line)
        log_probs = self._log_probs(self.data.rows_of(self.tokenizer, questions))
        scored = []
        for record, question, row in zip(records, questions, log_probs, strict=True):
            number = _number(record[-1], question)
            scored.append(Scored(record[0], record[-1], [question.choices[number]], [float(row[number])]))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        if metric not in (None, "accuracy"):
            raise UsageError(f"--metric {metric}: choices are judged by accuracy")
        questions = self._questions([record[0] for record in records], 1)
        log_probs = self._log_probs(self.data.rows_of(self.tokenizer, questions))
        right = sum(
            int(row.argmax()) == _number(record[-1], question)
            for row, record, question in zip(log_probs, records, questions, strict=True)
        )
        chance = sum(1 / len(question.choices) for question in questions) / max(len(questions), 1)
        scores = {"accuracy": right / max(len(records), 1)}
        return Evaluation(scores, f"choices|chance:{chance:.4f}", len(records))

    @torch.inference_mode()
    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        """What is read with one choice: its own, or the one whose number or text is ``target``."""
        target = target.text if isinstance(target, Candidate) else target
        (question,) = self._questions([source], 1)
        (rows,) = self.data.rows_of(self.tokenizer, [question])
        (log_probs,) = self._log_probs([rows])
        number = int(log_probs.argmax()) if target is None else _number(target, question)
        return Written(
            lambda: self.model.judge(
                tokens_of(rows[number : number + 1], self.tokenizer.pad).to(self.device), None
            ),
            self.tokenizer.pieces(rows[number].ids),
            [],
            [question.choices[number]],
            log_probs=(float(log_probs[number]),),
        )

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        """Any texts, each by itself."""
        return self.data.layout.alone(self.tokenizer, texts, self.data.longest)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def _questions(self, texts: Sequence[str], first_line: int) -> list[Question]:
        return [self.data.question_of(text, line) for line, text in enumerate(texts, start=first_line)]

    def _candidates(self, question: Question, log_probs: Float[Tensor, "choices"]) -> list[Candidate]:
        values, numbers = log_probs.topk(min(self.best, len(question.choices)))
        found = []
        for value, number in zip(values.tolist(), numbers.tolist(), strict=True):
            choice = question.choices[number]
            found.append(
                Candidate(choice, [choice], [value], value, value, finished=True, facts={"choice": number})
            )
        return found

    def _log_probs(self, rows: Sequence[tuple[Reading, ...]]) -> list[Float[Tensor, "choices"]]:
        flat = [(reading,) for own in rows for reading in own]
        if not flat:
            return []
        scores = judged(self.model, flat, self.tokenizer.pad, self.device, self.budget)[:, 0]
        return [own.log_softmax(0) for own in torch.split(scores, [len(own) for own in rows])]


def _number(label: str, question: Question) -> int:
    if label in question.choices:
        return question.choices.index(label)
    if not label.isdigit() or int(label) >= len(question.choices):
        raise DataError(
            f"expected a number from 0 to {len(question.choices) - 1} or one of the choices, found {label!r}",
            line=question.line,
            field="label",
        )
    return int(label)
