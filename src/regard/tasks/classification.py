"""What a text is: a class with its probability, or a number. A pair of texts has a tab between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regard.core.errors import DataError, UsageError, nearest
from regard.core.sequences import Memory, Places, Tokens
from regard.data.batches import evaluation_batches
from regard.data.examples import tokens_of
from regard.data.labelled import LabelledSpec, number_of
from regard.data.labels import Labels
from regard.data.layouts import Reading
from regard.data.tokenizers import Tokenizer
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.class_scores import class_scores
from regard.tasks.correlation import pearson, spearman
from regard.tasks.engine import LAST, NO_ENGINE, Engines, ReadingEngine, answering, states_of
from regard.tasks.task import NO_WISHES, Asked, Evaluation, Means, Task, TaskSpec, Wishes, Written


@runtime_checkable
class Judge(Protocol):
    """What a model must be able to do to answer."""

    def judge(self, tokens: Tokens, places: Places | None) -> Float[Tensor, "batch *asked scores"]: ...
    def judged(self, memory: Memory, places: Places | None) -> Float[Tensor, "batch *asked scores"]:
        """The same of what was read elsewhere."""


class ClassificationSpec(TaskSpec):
    budget: int = Field(default=4096, ge=1)
    """Padded tokens that are read together."""

    def build(self, means: Means) -> "Classification":
        return Classification(
            cast(Judge, means.model),
            means.lexicon["text"],
            means.lexicon.labels["label"],
            cast(LabelledSpec, means.data),
            means.device,
            means.search.answers,
            self.budget,
            means.engines,
        )


@dataclass
class Classification(Task):
    model: Judge
    tokenizer: Tokenizer
    labels: Labels
    data: LabelledSpec
    device: torch.device
    best: int
    budget: int
    engines: Engines = NO_ENGINE

    def refusal(self, wishes: Wishes, keep: bool) -> str | None:
        return self.engines.refusal_to_read(LAST)

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The most probable classes of every text."""
        readings = self.data.rows_of(self.tokenizer, asked.texts, asked.first_line)
        log_probs = self._log_probs(readings)
        engine = answering(self.engines.reading, self.refusal(NO_WISHES, False))
        return [
            Answer(text, self.tokenizer.pieces(reading[0].ids), self._candidates(row), engine=engine)
            for text, reading, row in zip(asked.texts, readings, log_probs, strict=True)
        ]

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p(class | text)."""
        log_probs = self._log_probs(
            self.data.rows_of(self.tokenizer, [record[0] for record in records], first_line)
        )
        scored = []
        for line, (record, row) in enumerate(zip(records, log_probs, strict=True), start=first_line):
            text, label = record[0], record[-1]
            value = float(row[self.labels.number(label, line=line)])
            scored.append(Scored(text, label, [label], [value]))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        if not records:
            raise DataError("there is no example to judge it by")
        first = metric or "accuracy"
        answers = [answer.text for answer in self.answer(Asked([record[0] for record in records]))]
        scores = class_scores(answers, [record[-1] for record in records], self.labels.names)
        if first not in scores:
            raise UsageError(f"--metric {first}: not of {self.labels.size} classes{nearest(first, scores)}")
        positive = f"|positive:{self.labels.names[-1]}" if "f1" in scores else ""
        signature = f"classes:{self.labels.size}{positive}"
        return Evaluation({first: scores.pop(first), **scores}, signature, len(records))

    @torch.inference_mode()
    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        target = target.text if isinstance(target, Candidate) else target
        (rows,) = self.data.rows_of(self.tokenizer, [source])
        row = self._log_probs([rows])[0]
        label = self.labels.names[int(row.argmax())] if target is None else target
        return Written(
            lambda: self.model.judge(tokens_of(rows, self.tokenizer.pad).to(self.device), None),
            self.tokenizer.pieces(rows[0].ids),
            [],
            [label],
            log_probs=(float(row[self.labels.number(label)]),),
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        return self.data.readings(self.tokenizer, texts, first_line)

    def _candidates(self, log_probs: Float[Tensor, "labels"]) -> list[Candidate]:
        values, numbers = log_probs.topk(min(self.best, self.labels.size))
        return [
            Candidate(name, [name], [value], value, value, finished=True)
            for name, value in zip(
                (self.labels.names[number] for number in numbers.tolist()), values.tolist(), strict=True
            )
        ]

    def _log_probs(self, readings: Sequence[tuple[Reading, ...]]) -> Float[Tensor, "texts labels"]:
        engine = self.engines.reading
        scores = judged(self.model, readings, self.tokenizer.pad, self.device, self.budget, engine)
        return scores.log_softmax(-1)


class SimilaritySpec(TaskSpec):
    """How alike, or how much of something: a number for every line."""

    budget: int = Field(default=4096, ge=1)
    """Padded tokens that are read together."""

    def build(self, means: Means) -> "Similarity":
        return Similarity(
            cast(Judge, means.model),
            means.lexicon["text"],
            cast(LabelledSpec, means.data),
            means.device,
            self.budget,
            means.engines,
        )


@dataclass
class Similarity(Task):
    model: Judge
    tokenizer: Tokenizer
    data: LabelledSpec
    device: torch.device
    budget: int
    engines: Engines = NO_ENGINE

    def refusal(self, wishes: Wishes, keep: bool) -> str | None:
        return self.engines.refusal_to_read(LAST)

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        readings = self.data.rows_of(self.tokenizer, asked.texts, asked.first_line)
        values = self._values(readings)
        engine = answering(self.engines.reading, self.refusal(NO_WISHES, False))
        return [
            Answer(
                text,
                self.tokenizer.pieces(reading[0].ids),
                [Candidate(f"{value:.4f}", [f"{value:.4f}"], [], 0.0, value, finished=True)],
                engine=engine,
            )
            for text, reading, value in zip(asked.texts, readings, values.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        raise UsageError("a number is not a probability: use eval, or run")

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """Correlation with what people said, by value and by rank, and the squared error."""
        if metric not in (None, "pearson", "spearman"):
            raise UsageError(f"--metric {metric}: numbers are judged by pearson and spearman")
        said = self._values(self.data.rows_of(self.tokenizer, [record[0] for record in records]))
        wanted = np.array([number_of(record[-1], line=line) for line, record in enumerate(records, start=1)])
        found = said.double().numpy()
        scores = {
            "pearson": pearson(found, wanted),
            "spearman": spearman(found, wanted),
            "mse": float(np.square(found - wanted).mean()),
        }
        if metric is not None:
            scores = {metric: scores.pop(metric)} | scores
        return Evaluation(scores, f"correlation|pairs:{len(records)}|ties:mean rank", len(records))

    @torch.inference_mode()
    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        (rows,) = self.data.rows_of(self.tokenizer, [source])
        return Written(
            lambda: self.model.judge(tokens_of(rows, self.tokenizer.pad).to(self.device), None),
            self.tokenizer.pieces(rows[0].ids),
            [],
            [f"{float(self._values([rows])[0]):.4f}"],
            log_probs=(0.0,),
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        return self.data.readings(self.tokenizer, texts, first_line)

    def _values(self, readings: Sequence[tuple[Reading, ...]]) -> Float[Tensor, "texts"]:
        engine = self.engines.reading
        scores = judged(self.model, readings, self.tokenizer.pad, self.device, self.budget, engine)
        return scores[:, 0]


def judged(
    model: Judge,
    examples: Sequence[tuple[Reading, ...]],
    padding: int,
    device: torch.device,
    budget: int,
    engine: ReadingEngine | None = None,
) -> Float[Tensor, "texts scores"]:
    """Scores of examples, in their order, read together with such as are as long."""
    found = dict[int, Tensor]()
    if engine is None or engine.refusal(LAST):
        for numbers, tokens in _batches(examples, padding, device, budget):
            found |= dict(zip(numbers, model.judge(tokens, None).float().cpu(), strict=True))
    else:
        batches = _batches(examples, padding, device, min(budget, engine.budget))
        for numbers, tokens, states in states_of(engine, batches):
            scores = model.judged(Memory(states, tokens.real), None)
            found |= dict(zip(numbers, scores.float().cpu(), strict=True))
    return torch.stack([found[number] for number in range(len(examples))])


def _batches(
    examples: Sequence[tuple[Reading, ...]], padding: int, device: torch.device, budget: int
) -> Iterator[tuple[list[int], Tokens]]:
    """The longest first."""
    lengths = np.array(
        [[len(rows) * max(len(row.ids) for row in rows)] for rows in examples], dtype=np.int32
    ).reshape(-1, 1)
    for numbers in reversed(evaluation_batches(lengths, max(budget, int(lengths.max(initial=1))))):
        rows = [row for number in numbers for row in examples[number]]
        yield numbers.tolist(), tokens_of(rows, padding).to(device)
