"""Hidden words guessed from both sides: ranked words with their probabilities for every gap of a text.

A gap is written ``___``, ``[MASK]``, or as the vocabulary calls it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Memory, Tokens
from regard.data.layouts import Reading, marked
from regard.data.tokenizers import Tokenizer
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.blanks import BLANK
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written, windows

_GAPS = (BLANK, "[MASK]", "<mask>")
_TOGETHER = 32
"""Texts that are read side by side."""


@runtime_checkable
class Guesser(Protocol):
    """What a model must be able to do to answer."""

    @property
    def longest(self) -> int | None: ...
    def read(self, tokens: Tokens) -> Memory: ...
    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]: ...


class FillingSpec(TaskSpec):
    apart: int = Field(default=7, ge=1)
    """When a text is judged: every so manieth token is hidden at a time, until each was."""

    def build(self, means: Means) -> "Filling":
        model = cast(Guesser, means.model)
        return Filling(model, means.lexicon["text"], means.device, means.search.answers, self.apart)


@dataclass
class Filling(Task):
    needs_answer: ClassVar[bool] = False

    model: Guesser
    tokenizer: Tokenizer
    device: torch.device
    best: int
    apart: int

    def asks(self, text: str) -> bool:
        return re.search(self._pattern, text) is not None

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The likeliest tokens for every gap; where a text has several, they are filled side by side."""
        rows = [
            self._row(text, line, asked.truncate) for line, text in enumerate(asked.texts, asked.first_line)
        ]
        return [
            self._answer(text, row, log_probs)
            for text, row, log_probs in zip(asked.texts, rows, self._gaps(rows), strict=True)
        ]

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p of every token given all others of its text (Salazar et al. 2020 eq. 1)."""
        scored = []
        for line, record in enumerate(records, start=first_line):
            ids = self._fitting(self.tokenizer.encode(record[0]), line, truncate)
            values = self._each_hidden(ids, apart=len(ids) or 1)
            scored.append(Scored("", record[0], self.tokenizer.pieces(ids), values.tolist()))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """How likely the tokens of a text are, some of them hidden at a time; or how often a gap is filled
        with what belongs there, where records say what that is."""
        if metric is not None and metric not in ("perplexity", "accuracy"):
            raise UsageError(f"--metric {metric}: hidden words are judged by perplexity and accuracy")
        if all(len(record) > 1 for record in records):
            answers = self.answer(Asked([record[0] for record in records], truncate=True))
            right = sum(
                answer.text.strip() == record[1].strip()
                for answer, record in zip(answers, records, strict=True)
            )
            return Evaluation({"accuracy": right / len(records)}, "accuracy|first guess", len(records))
        room = (self.model.longest or 512) - 2
        pieces = [
            chunk
            for ids in self.tokenizer.encode_many([record[0] for record in records])
            for chunk in windows(ids, room)
        ]
        values = torch.cat([self._each_hidden(list(chunk), self.apart) for chunk in pieces])
        perplexity = math.exp(min(-float(values.double().mean()), 700.0))
        signature = f"perplexity|tokens:{len(values)}|hidden:1/{self.apart}|context:both sides"
        return Evaluation({"perplexity": perplexity}, signature, len(records))

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        """A text without a gap is only read."""
        if not self.asks(source):
            ids = self._fitting(self.tokenizer.encode(source), 1, truncate=True)
            return self._read([self.tokenizer.begin, *ids, self.tokenizer.end], [], [])
        row = self._row(source, 1, truncate=True)
        if not isinstance(target, Candidate):
            found = self.answer(Asked([source], truncate=True))[0].candidates[0]
            if target:
                return self._read(row, [target], [found.log_prob])
            target = found
        return self._read(row, target.pieces, target.token_log_probs)

    def _read(self, row: list[int], found: list[str], log_probs: list[float]) -> Written:
        return Written(
            lambda: self.model.read(self._tokens([row])),
            self.tokenizer.pieces(row),
            [],
            found,
            log_probs=tuple(log_probs),
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        """Texts without a gap, as they are."""
        return marked(self.tokenizer, texts, self.model.longest if truncate else None)

    def shown(self, source: str, answer: str) -> str:
        words = iter(answer.split(" … "))
        return re.sub(self._pattern, lambda _: next(words, BLANK).strip(), source)

    @property
    def _pattern(self) -> str:
        return r"\s*(?:" + "|".join(map(re.escape, (*_GAPS, *self._own_names))) + ")"

    @property
    def _own_names(self) -> list[str]:
        return [] if self._hidden is None else self.tokenizer.pieces([self._hidden])

    @property
    def _hidden(self) -> int:
        assert self.tokenizer.marks.hidden is not None, "trained with tokens hidden"
        return self.tokenizer.marks.hidden

    def _row(self, text: str, line: int, truncate: bool) -> list[int]:
        sides = re.split(self._pattern, text)
        if len(sides) < 2:
            raise DataError(f"expected a gap to fill, written {BLANK} or {_GAPS[1]}, found none", line=line)
        first, *others = sides
        ids = self.tokenizer.encode(first) if first.strip() else []
        for side in others:
            more = self.tokenizer.encode_more(side) if side.strip() else []
            ids += [self._hidden, *more]
        row = self._fitting(ids, line, truncate)
        if self._hidden not in row:
            raise DataError("its gap stands beyond what this model can read", line=line)
        return [self.tokenizer.begin, *row, self.tokenizer.end]

    def _fitting(self, ids: list[int], line: int, truncate: bool) -> list[int]:
        longest = self.model.longest
        if longest is None or len(ids) + 2 <= longest:
            return ids
        if not truncate:
            raise DataError(f"{len(ids)} tokens, but this model has {longest} positions", line=line)
        return ids[: longest - 2]

    def _gaps(self, rows: Sequence[list[int]]) -> list[Float[Tensor, "gaps vocabulary"]]:
        """Of every row, what may stand in its gaps."""
        found = dict[int, Tensor]()
        by_length = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        for group in windows(by_length, _TOGETHER):
            tokens = self._tokens([rows[number] for number in group])
            states = self.model.read(tokens).states
            for place, number in enumerate(group):
                gaps = states[place][tokens.ids[place] == self._hidden]
                found[number] = self.model.predict(gaps).float().log_softmax(-1)
        return [found[number] for number in range(len(rows))]

    def _answer(self, text: str, row: list[int], log_probs: Float[Tensor, "gaps vocabulary"]) -> Answer:
        values, tokens = log_probs.topk(min(self.best, log_probs.shape[-1]))
        candidates = []
        for rank in range(values.shape[1]):
            ids, own = tokens[:, rank].tolist(), values[:, rank].tolist()
            words = [self.tokenizer.decode([token]) or self.tokenizer.pieces([token])[0] for token in ids]
            candidates.append(
                Candidate(
                    " … ".join(words), self.tokenizer.pieces(ids), own, sum(own), sum(own), finished=True
                )
            )
        return Answer(text, self.tokenizer.pieces(row), candidates)

    def _each_hidden(self, ids: list[int], apart: int) -> Float[Tensor, "_"]:
        """log p of every token, hidden together with those ``apart`` tokens away."""
        row = torch.tensor([self.tokenizer.begin, *ids, self.tokenizer.end], device=self.device)
        found = torch.zeros(len(ids))
        for starts in windows(range(min(apart, len(ids))), _TOGETHER):
            rows = row.repeat(len(starts), 1)
            for number, start in enumerate(starts):
                rows[number, 1 + start : -1 : apart] = self._hidden
            states = self.model.read(Tokens.whole(rows)).states
            for number, start in enumerate(starts):
                log_probs = self.model.predict(states[number, 1 + start : -1 : apart]).float().log_softmax(-1)
                wanted = row[1 + start : -1 : apart, None]
                found[start::apart] = log_probs.gather(-1, wanted)[:, 0].cpu()
        return found

    def _tokens(self, rows: Sequence[list[int]]) -> Tokens:
        return Tokens.pad(rows, self.tokenizer.pad).to(self.device)
