"""Tokens that look as if they did not belong: of every token of a text, how likely it was replaced."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.core.randomness import drawing_from
from regard.core.sequences import Memory, Places, Tokens
from regard.data.layouts import Reading, marked
from regard.data.passages import PassageBatch, PassageMaker, PassagesSpec
from regard.data.randomness import keyed
from regard.data.relations import Span
from regard.data.tokenizers import Tokenizer
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written, windows

_TOGETHER = 32
"""Texts that are read side by side."""
_SEED = 0x5EED
"""What is hidden, and guessed, when a text is judged: always the same."""
_OPEN, _CLOSE = "⟦", "⟧"
"""Around what looks replaced."""


@runtime_checkable
class Reads(Protocol):
    def read(self, tokens: Tokens) -> Memory: ...


@runtime_checkable
class Doubter(Protocol):
    """What a model must be able to do to answer."""

    @property
    def longest(self) -> int | None: ...
    @property
    def generator(self) -> Reads: ...
    def read(self, tokens: Tokens) -> Memory: ...
    def deceive(
        self,
        states: Float[Tensor, "asked width"],
        tokens: Tokens,
        places: Places,
        wanted: Int[Tensor, "asked"],
    ) -> tuple[Tokens, Bool[Tensor, "batch time"]]: ...
    def doubt(self, memory: Memory) -> Float[Tensor, "batch time"]: ...


class DetectingSpec(TaskSpec):
    threshold: float = Field(default=0.5, gt=0, lt=1)
    """Probability from which on a token is said to be replaced."""

    def build(self, means: Means) -> "Detecting":
        data, tokenizer = cast(PassagesSpec, means.data), means.lexicon["text"]
        return Detecting(cast(Doubter, means.model), tokenizer, data, means.device, self.threshold)


@dataclass
class Detecting(Task):
    model: Doubter
    tokenizer: Tokenizer
    data: PassagesSpec
    device: torch.device
    threshold: float

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The text, with marks around what looks replaced; probabilities of every token beside it."""
        rows = [
            self._row(text, line, asked.truncate) for line, text in enumerate(asked.texts, asked.first_line)
        ]
        return [
            self._answer(text, row, scores)
            for text, row, scores in zip(asked.texts, rows, self._doubts(rows), strict=True)
        ]

    def _answer(self, text: str, row: list[int], scores: Float[Tensor, "time"]) -> Answer:
        probabilities = scores.sigmoid().tolist()
        surely = torch.maximum(F.logsigmoid(scores), F.logsigmoid(-scores)).sum().item()
        shown = marking(text, self.tokenizer.offsets(text), [p >= self.threshold for p in probabilities])
        pieces = self.tokenizer.pieces(row)
        log_probs = F.logsigmoid(scores).tolist()
        facts = {"replaced": [round(p, 6) for p in probabilities]}
        found = Candidate(shown, pieces, log_probs, surely, surely, finished=True, facts={**facts})
        return Answer(text, pieces, [found])

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p of every token that it belongs there."""
        rows = [self._row(record[0], line, truncate) for line, record in enumerate(records, first_line)]
        return [
            Scored("", record[0], self.tokenizer.pieces(row), F.logsigmoid(-scores).tolist())
            for record, row, scores in zip(records, rows, self._doubts(rows), strict=True)
        ]

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """How well what the generator replaced is told from what it left, of the documents end to end."""
        if metric not in (None, "f1", "accuracy"):
            raise UsageError(f"--metric {metric}: telling tokens apart is judged by f1 and accuracy")
        stream = list[int]()
        for ids in self.tokenizer.encode_many([record[0] for record in records]):
            stream += [*ids, self.tokenizer.end]
        said, true = list[Tensor](), list[Tensor]()
        with drawing_from(torch.Generator().manual_seed(_SEED)):
            for batch in self._passages(np.array(stream)):
                real = batch.places.real
                states = batch.places.pick(self.model.generator.read(batch.tokens).states)[real]
                shown, replaced = self.model.deceive(states, batch.tokens, batch.places, batch.wanted[real])
                scores = self.model.doubt(self.model.read(shown))[shown.real]
                said.append((scores >= _logit(self.threshold)).cpu())
                true.append(replaced[shown.real].cpu())
        return _judged(torch.cat(said), torch.cat(true), metric or "f1", len(records))

    def _passages(self, stream: np.ndarray) -> Iterator[PassageBatch]:
        maker = PassageMaker(self.data.model_copy(update={"relation": None, "short": 0.0}), self.tokenizer)
        whole = np.array([[0, len(stream)]])
        spans = [
            Span(begin, min(begin + maker.room, len(stream)), 0)
            for begin in range(0, len(stream), maker.room)
        ]
        for number, some in enumerate(windows(spans, _TOGETHER)):
            yield maker.batch(stream, whole, some, keyed(_SEED, number)).to(self.device)

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        row = self._row(source, 1, truncate=True)
        found = target
        if not isinstance(found, Candidate):
            found = self.answer(Asked([source], truncate=True))[0].candidates[0]
        return Written(
            lambda: self.model.read(self._tokens([row])),
            self.tokenizer.pieces([self.tokenizer.begin, *row, self.tokenizer.end]),
            [],
            [target if isinstance(target, str) else found.text],
            log_probs=(found.log_prob,),
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        return marked(self.tokenizer, texts, self.model.longest if truncate else None)

    def _row(self, text: str, line: int, truncate: bool) -> list[int]:
        ids, longest = self.tokenizer.encode(text), self.model.longest
        if longest is None or len(ids) + 2 <= longest:
            return ids
        if not truncate:
            raise DataError(f"{len(ids)} tokens, but this model has {longest} positions", line=line)
        return ids[: longest - 2]

    def _doubts(self, rows: Sequence[list[int]]) -> list[Float[Tensor, "_"]]:
        """Of every token of every row, without the marks around it."""
        found = dict[int, Tensor]()
        by_length = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        for group in windows(by_length, _TOGETHER):
            scores = self.model.doubt(self.model.read(self._tokens([rows[number] for number in group])))
            for number, row in zip(group, scores.float().cpu(), strict=True):
                found[number] = row[1 : 1 + len(rows[number])]
        return [found[number] for number in range(len(rows))]

    def _tokens(self, rows: Sequence[list[int]]) -> Tokens:
        framed = [[self.tokenizer.begin, *row, self.tokenizer.end] for row in rows]
        return Tokens.pad(framed, self.tokenizer.pad).to(self.device)


def marking(text: str, spans: Sequence[tuple[int, int]], doubtful: Sequence[bool]) -> str:
    """Marks around what is doubtful; neighbours that touch are marked as one."""
    marked, done, closed = "", 0, -1
    for (begin, end), doubt in zip(spans, doubtful, strict=False):
        if not doubt or begin == end:
            continue
        if begin == closed:
            marked = marked[: -len(_CLOSE)]
        else:
            marked += text[done:begin] + _OPEN
        marked += text[begin:end] + _CLOSE
        done = closed = end
    return marked + text[done:]


def _judged(said: Tensor, true: Tensor, metric: str, examples: int) -> Evaluation:
    right, marked, there = (int(some.sum()) for some in (said & true, said, true))
    scores = {
        "f1": 2 * right / max(1, marked + there),
        "accuracy": float((said == true).double().mean()),
        "precision": right / max(1, marked),
        "recall": right / max(1, there),
        "replaced": there / max(1, len(true)),
    }
    ordered = {metric: scores[metric]} | scores
    return Evaluation(ordered, f"{metric}|tokens:{len(true)}|replaced:{there}|by its own generator", examples)


def _logit(probability: float) -> float:
    return math.log(probability / (1 - probability))
