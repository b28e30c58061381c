"""A tag for every word of a line; words have blanks between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Places, Tokens
from regard.data.examples import tokens_of
from regard.data.labels import Labels
from regard.data.layouts import Reading
from regard.data.tag_schemes import allowed_moves, scheme_of, spans_of
from regard.data.tagged import TaggedSpec
from regard.data.tokenizers import Tokenizer
from regard.heads.tags import Tagger
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written, windows


@runtime_checkable
class WordJudge(Protocol):
    """What a model must be able to do to answer."""

    @property
    def head(self) -> Tagger: ...
    def judge(self, tokens: Tokens, places: Places | None) -> Float[Tensor, "batch *asked scores"]: ...


class TaggingSpec(TaskSpec):
    rows: int = Field(default=64, ge=1)
    """Rows that are read side by side."""
    lawful: bool = True
    """Of tags that mark spans, answer only such as can follow one another."""

    def build(self, means: Means) -> "Tagging":
        return Tagging(
            cast(WordJudge, means.model),
            means.lexicon["text"],
            means.lexicon.labels["label"],
            cast(TaggedSpec, means.data),
            means.device,
            self,
        )


@dataclass
class Tagging(Task):
    model: WordJudge
    tokenizer: Tokenizer
    labels: Labels
    data: TaggedSpec
    device: torch.device
    spec: TaggingSpec

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        sentences = [text.split() for text in asked.texts]
        answers = []
        for text, words, found in zip(asked.texts, sentences, self._tagged(sentences), strict=True):
            tags = [self.labels.names[number] for number, _ in found]
            sure = [math.log(max(probability, 1e-30)) for _, probability in found]
            candidate = Candidate(" ".join(tags), tags, sure, sum(sure), sum(sure), finished=True)
            answers.append(Answer(text, words, [candidate] if words else []))
        return answers

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p of every given tag, whatever the others are."""
        sentences, scored = [record[0].split() for record in records], []
        for line, (record, words) in enumerate(zip(records, sentences, strict=True), start=first_line):
            tags = record[1].split()
            if len(tags) != len(words):
                raise DataError(f"{len(words)} words, but {len(tags)} tags", line=line)
            numbers = [self.labels.number(tag, line=line) for tag in tags]
            rows = torch.cat([found for _, found in self._judged([words])[0]]) if words else torch.zeros(0, 1)
            values = rows.gather(-1, torch.tensor(numbers)[:, None])[:, 0].clamp_min(1e-30).log()
            scored.append(Scored(record[0], record[1], tags, values.tolist()))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """F1 of spans where tags mark spans, and the share of words tagged right."""
        answers = [answer.text.split() for answer in self.answer(Asked([record[0] for record in records]))]
        wanted = [record[1].split() for record in records]
        if (metric or "f1") not in ("f1", "accuracy"):
            raise UsageError(f"--metric {metric}: tags are judged by f1 and accuracy")
        scores = _scores(answers, wanted)
        first = metric or next(iter(scores))
        scores = {first: scores[first]} | scores
        words = sum(map(len, wanted))
        return Evaluation(scores, f"spans|scheme:any|words:{words}|micro|conlleval", len(records))

    @torch.inference_mode()
    def written(self, source: str, target: str | None = None) -> Written:
        (reading, *_), *_ = self.data.readings(self.tokenizer, [source.split()])
        (answer,) = self.answer(Asked([source]))
        tags = (answer.text if target is None else target).split()
        log_probs = tuple(self.score([(source, " ".join(tags))])[0].token_log_probs)
        return Written(
            lambda: self._judge([reading]), self.tokenizer.pieces(reading.ids), [], tags, log_probs=log_probs
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def _tagged(self, sentences: Sequence[Sequence[str]]) -> list[list[tuple[int, float]]]:
        """Of every word its tag's number, and how probable it is."""
        return [
            [
                (number, float(row[number]))
                for numbers, rows in parts
                for number, row in zip(numbers, rows, strict=True)
            ]
            for parts in self._judged(sentences)
        ]

    def _judged(
        self, sentences: Sequence[Sequence[str]]
    ) -> list[list[tuple[list[int], Float[Tensor, "words labels"]]]]:
        """For every sentence, row by row: the best tags, and the probabilities of all."""
        readings = self.data.readings(self.tokenizer, [words for words in sentences if words])
        flat = [reading for parts in readings for reading in parts]
        order = sorted(range(len(flat)), key=lambda number: len(flat[number].ids))
        found = dict[int, tuple[list[int], Tensor]]()
        for numbers in windows(order, self.spec.rows):
            scores, places = self._judge([flat[number] for number in numbers])
            best = self.model.head.best(scores, places, self._allowed)
            rows = self.model.head.probabilities(scores, places).float().cpu()
            for number, tags, row in zip(numbers, best, rows, strict=True):
                found[number] = tags, row[: len(tags)]
        counted, lengths = iter(range(len(flat))), iter(map(len, readings))
        return [[found[next(counted)] for _ in range(next(lengths))] if words else [] for words in sentences]

    def _judge(self, readings: Sequence[Reading]) -> tuple[Tensor, Places]:
        tokens = tokens_of(readings, self.tokenizer.pad).to(self.device)
        places = Places.pad([reading.places for reading in readings]).to(self.device)
        return self.model.judge(tokens, places).float(), places

    @property
    def _allowed(self) -> Tensor | None:
        if not self.spec.lawful:
            return None
        scheme = self.data.scheme or scheme_of([[name] for name in self.labels.names])
        return None if scheme in (None, "iob1") else allowed_moves(self.labels.names, scheme).to(self.device)


def _scores(found: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> dict[str, float]:
    """F1 of spans (as conlleval counts, 0 to 100) where tags mark any; the share of words tagged right."""
    words = sum(map(len, wanted))
    right = sum(
        a == b for ours, theirs in zip(found, wanted, strict=True) for a, b in zip(ours, theirs, strict=True)
    )
    accuracy = {"accuracy": right / max(words, 1)}
    if scheme_of(wanted) is None:
        return accuracy
    ours, theirs = (
        {(row, *span) for row, tags in enumerate(side) for span in spans_of(tags)} for side in (found, wanted)
    )
    both = len(ours & theirs)
    precision, recall = both / max(len(ours), 1), both / max(len(theirs), 1)
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return {"f1": 100 * f1, "precision": 100 * precision, "recall": 100 * recall} | accuracy
