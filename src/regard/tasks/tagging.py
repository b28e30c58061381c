"""A tag for every word of a line; words have blanks between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Places, Tokens
from regard.core.spec import Plain
from regard.data.column_files import words_of
from regard.data.examples import tokens_of
from regard.data.labels import Labels
from regard.data.layouts import Reading
from regard.data.tag_schemes import allowed_moves, mark_spans, scheme_of_names, spans_of
from regard.data.tagged import TaggedSpec
from regard.data.tokenizers import Tokenizer
from regard.heads.tags import Tagger
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.span_scores import tag_scores
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written, windows

_SHOWN = 5
"""Tags of a word whose probabilities are told."""


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
        sentences = [words_of(text) for text in asked.texts]
        return [
            Answer(text, words, [self._candidate(words, *found)] if words else [])
            for text, words, found in zip(asked.texts, sentences, self._judged(sentences), strict=True)
        ]

    def _candidate(
        self, words: list[str], numbers: list[int], rows: Float[Tensor, "words labels"]
    ) -> Candidate:
        tags = [self.labels.names[number] for number in numbers]
        sure = _log(rows.gather(-1, torch.tensor(numbers)[:, None])[:, 0]).tolist()
        facts: dict[str, Plain] = {"words": self._facts(words, tags, rows)}
        if mark_spans(self.labels.names):
            facts["spans"] = [
                {**span._asdict(), "text": " ".join(words[span.begin : span.end])} for span in spans_of(tags)
            ]
        return Candidate(" ".join(tags), tags, sure, sum(sure), sum(sure), finished=True, facts=facts)

    def _facts(self, words: list[str], tags: list[str], rows: Float[Tensor, "words labels"]) -> list[Plain]:
        """Each word with its tag, and how probable the likeliest tags are, best first."""
        values, numbers = rows.topk(min(_SHOWN, self.labels.size))
        return [
            {
                "word": word,
                "tag": tag,
                "probabilities": {
                    self.labels.names[number]: round(value, 6)
                    for number, value in zip(own, likely, strict=True)
                },
            }
            for word, tag, own, likely in zip(words, tags, numbers.tolist(), values.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p of every given tag, whatever the others are."""
        sentences = [words_of(record[0]) for record in records]
        scored = []
        for line, (record, words, (_, rows)) in enumerate(
            zip(records, sentences, self._judged(sentences), strict=True), start=first_line
        ):
            tags = words_of(record[1])
            if len(tags) != len(words):
                raise DataError(f"{len(words)} words, but {len(tags)} tags", line=line)
            numbers = torch.tensor([self.labels.number(tag, line=line) for tag in tags], dtype=torch.long)
            values = _log(rows.gather(-1, numbers[:, None])[:, 0])
            scored.append(Scored(record[0], record[1], tags, values.tolist()))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """F1 of spans where tags mark spans, exact and by overlap; the share of words tagged right."""
        sentences = [words_of(record[0]) for record in records]
        answers = [[self.labels.names[number] for number in found] for found, _ in self._judged(sentences)]
        wanted = [words_of(record[1]) for record in records]
        for line, (found, tags) in enumerate(zip(answers, wanted, strict=True), start=1):
            if len(found) != len(tags):
                raise DataError(f"{len(found)} words, but {len(tags)} tags", line=line)
        scores = tag_scores(answers, wanted)
        first = next(iter(scores)) if metric in (None, "f1") else metric
        if first not in scores:
            raise UsageError(f"--metric {metric}: these tags are judged by {', '.join(scores)}")
        scores = {first: scores[first]} | scores
        words = sum(map(len, wanted))
        return Evaluation(scores, f"spans|scheme:any|words:{words}|micro|conlleval", len(records))

    @torch.inference_mode()
    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        target = target.text if isinstance(target, Candidate) else target
        (reading, *_), *_ = self.data.readings(self.tokenizer, [words_of(source)])
        (answer,) = self.answer(Asked([source]))
        tags = words_of(answer.text if target is None else target)
        log_probs = tuple(self.score([(source, " ".join(tags))])[0].token_log_probs)
        return Written(
            lambda: self._judge([reading]), self.tokenizer.pieces(reading.ids), [], tags, log_probs=log_probs
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        """Of a sentence too long for one row, the first."""
        return [rows[0] for rows in self.data.readings(self.tokenizer, [text.split() for text in texts])]

    def _judged(
        self, sentences: Sequence[Sequence[str]]
    ) -> list[tuple[list[int], Float[Tensor, "words labels"]]]:
        """For every sentence the best tags, and the probabilities of all.

        A sentence that was read in several rows is tagged as one: what may follow what holds across them.
        """
        scores = self._scores(sentences)
        order = sorted((n for n, row in enumerate(scores) if len(row)), key=lambda n: len(scores[n]))
        found = {n: (list[int](), row) for n, row in enumerate(scores) if not len(row)}
        for numbers in windows(order, self.spec.rows):
            some = pad_sequence([scores[number] for number in numbers], batch_first=True)
            places = Places.pad([range(len(scores[number])) for number in numbers])
            best = self.model.head.best(some, places, self._allowed)
            rows = self.model.head.probabilities(some, places).float()
            for number, tags, row in zip(numbers, best, rows, strict=True):
                found[number] = tags, row[: len(tags)]
        return [found[number] for number in range(len(sentences))]

    def _scores(self, sentences: Sequence[Sequence[str]]) -> list[Float[Tensor, "words labels"]]:
        """Of every tag at every word, read together with rows of like length."""
        readings = self.data.readings(self.tokenizer, sentences)
        flat = [reading for parts in readings for reading in parts]
        order = sorted(range(len(flat)), key=lambda number: len(flat[number].ids))
        found = dict[int, Tensor]()
        for numbers in windows(order, self.spec.rows):
            scores, places = self._judge([flat[number] for number in numbers])
            for number, row, real in zip(numbers, scores.cpu(), places.real.cpu(), strict=True):
                found[number] = row[real]
        counted = iter(range(len(flat)))
        return [torch.cat([found[next(counted)] for _ in parts]) for parts in readings]

    def _judge(self, readings: Sequence[Reading]) -> tuple[Tensor, Places]:
        tokens = tokens_of(readings, self.tokenizer.pad).to(self.device)
        places = Places.pad([reading.places for reading in readings]).to(self.device)
        return self.model.judge(tokens, places).float(), places

    @cached_property
    def _allowed(self) -> Tensor | None:
        """Which tag may follow which, as far as that is known for certain."""
        if not self.spec.lawful or not mark_spans(self.labels.names):
            return None
        scheme = self.data.scheme or scheme_of_names(self.labels.names)
        return None if scheme in (None, "io", "iob1") else allowed_moves(self.labels.names, scheme)


def _log(probabilities: Float[Tensor, "words"]) -> Float[Tensor, "words"]:
    return probabilities.clamp_min(1e-30).log()
