"""Texts as vectors: one for a text, or one for each of its words where it stands.

Any model that reads gives them; one that does nothing else (a sentence encoder) answers with them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.data.batches import evaluation_batches
from regard.data.examples import tokens_of
from regard.data.labelled import BETWEEN, number_of
from regard.data.layouts import Reading, marked
from regard.data.tokenizers import Tokenizer
from regard.parts.pooling import SummingUpSpec
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.correlation import pearson, spearman
from regard.tasks.engine import NO_ENGINE, Engines, ReadingEngine, answering, states_of
from regard.tasks.task import WINDOW, Asked, Evaluation, Means, Task, TaskSpec, Wishes, Written, windows

_BUDGET = 4096
"""Padded tokens that are read together."""
_WORD = re.compile(r"\w+|[^\w\s]")


@runtime_checkable
class Reads(Protocol):
    """What a model must be able to do to give vectors."""

    @property
    def longest(self) -> int | None: ...
    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]: ...


@runtime_checkable
class HasGist(Protocol):
    @property
    def gist(self) -> nn.Module | None: ...


class WordVector(NamedTuple):
    """A word of a text, where it stands in it, and what was read there."""

    word: str
    begin: int
    end: int
    vector: Float[np.ndarray, "width"]


@dataclass
class Embedder:
    """Vectors of whatever a model reads; ``task`` knows how a line becomes a row."""

    model: Reads
    task: Task
    tokenizer: Tokenizer
    device: torch.device
    engine: ReadingEngine | None = None

    @torch.inference_mode()
    def texts(
        self,
        texts: Sequence[str],
        summing: SummingUpSpec,
        first_line: int = 1,
        truncate: bool = False,
    ) -> Float[np.ndarray, "texts width"]:
        """One vector a text, in their order."""
        readings = self._readings(texts, first_line, truncate)
        found = dict[int, Tensor]()
        for rows, tokens, layers in self._read(readings, summing):
            pooled = self._pooled(layers, tokens, summing).float()
            if summing.normalise:
                pooled = nn.functional.normalize(pooled, dim=-1)
            found |= dict(zip(rows, pooled.cpu(), strict=True))
        return torch.stack([found[row] for row in range(len(readings))]).numpy()

    def stream(
        self, texts: Iterable[str], summing: SummingUpSpec, truncate: bool = False
    ) -> Iterator[tuple[str, Float[np.ndarray, "width"]]]:
        """Texts and their vectors, in memory that does not grow with the input."""
        line = 1
        for some in windows(texts, WINDOW):
            yield from zip(some, self.texts(some, summing, line, truncate), strict=True)
            line += len(some)

    @torch.inference_mode()
    def words(
        self,
        texts: Sequence[str],
        summing: SummingUpSpec,
        first_line: int = 1,
        truncate: bool = False,
    ) -> list[list[WordVector]]:
        """Of every text its words with their vectors: the mean over a word's pieces, in this company.

        Words that were cut off are left out.
        """
        readings = self._readings(texts, first_line, truncate)
        found = dict[int, list[WordVector]]()
        for rows, _, layers in self._read(readings, summing):
            states = _layer(layers, summing.layer).float().cpu()
            for row, own in zip(rows, states, strict=True):
                found[row] = list(self._words(texts[row], readings[row], own, summing.normalise))
        return [found[row] for row in range(len(readings))]

    def _readings(self, texts: Sequence[str], first_line: int, truncate: bool) -> list[Reading]:
        longest = self.model.longest
        readings = []
        for line, reading in enumerate(self.task.readings(texts, first_line, truncate), start=first_line):
            if longest is not None and len(reading.ids) > longest:
                raise DataError(
                    f"{len(reading.ids)} tokens, but this model has {longest} positions (--truncate reads "
                    "its beginning)",
                    line=line,
                )
            readings.append(reading)
        return readings

    def _read(
        self, readings: Sequence[Reading], summing: SummingUpSpec
    ) -> Iterator[tuple[list[int], Tokens, list[Float[Tensor, "batch time _"]]]]:
        """Rows and what was made of them: all layers, or of an engine the last where no other is wanted."""
        if self.engine is None or self.engine.refusal(summing.layer):
            for rows, tokens in self._batches(readings, _BUDGET):
                yield rows, tokens, self.model.layers(tokens)
            return
        for rows, tokens, last in states_of(self.engine, self._batches(readings, self.engine.budget)):
            yield rows, tokens, [last]

    def _batches(self, readings: Sequence[Reading], budget: int) -> Iterator[tuple[list[int], Tokens]]:
        """Rows of like length together, the longest first: nobody shall wait for a long one at the end."""
        lengths = np.array([[len(reading.ids)] for reading in readings], dtype=np.int64).reshape(-1, 1)
        for rows in reversed(evaluation_batches(lengths, max(budget, int(lengths.max(initial=1))))):
            tokens = tokens_of([readings[row] for row in rows], self.tokenizer.pad)
            yield rows.tolist(), tokens.to(self.device)

    def _pooled(self, layers: list[Tensor], tokens: Tokens, summing: SummingUpSpec) -> Tensor:
        if summing.pooling is not None:
            return summing.pooling.pool(_layer(layers, summing.layer), tokens.real)
        gist = self.model.gist if isinstance(self.model, HasGist) else None
        if gist is None:
            raise UsageError(
                "--pooling gist: this model has no layer of its own over the first state; mean, first, "
                "last, max and mix work with any"
            )
        made: Tensor = gist(layers[-1])
        return made

    def _words(
        self, text: str, reading: Reading, states: Float[Tensor, "time width"], normalise: bool
    ) -> Iterator[WordVector]:
        own, spans = self.tokenizer.encode(text), self.tokenizer.offsets(text)
        first, count = _run(own, reading.ids)
        if own and not count:
            raise UsageError("this model does not read the tokens of a text in their order: no word is found")
        for word in _WORD.finditer(text):
            begin, end = word.span()
            at = [
                first + place
                for place, (left, right) in enumerate(spans[:count])
                if left < end and right > begin
            ]
            if at:
                vector = states[at].mean(0)
                vector = nn.functional.normalize(vector, dim=-1) if normalise else vector
                yield WordVector(word[0], begin, end, vector.numpy())


def _run(own: Sequence[int], ids: Sequence[int]) -> tuple[int, int]:
    """Where in a row the tokens of its text begin, and how many of them are there."""
    best = (0, 0)
    for first in range(min(2, len(ids))):
        count = 0
        while first + count < len(ids) and count < len(own) and ids[first + count] == own[count]:
            count += 1
        best = max(best, (first, count), key=lambda run: run[1])
    return best


def _layer(layers: list[Tensor], number: int | None) -> Float[Tensor, "batch time width"]:
    if number is None:
        wide = layers[-1].shape[-1]
        return torch.stack([layer for layer in layers if layer.shape[-1] == wide]).mean(0)
    if not -len(layers) <= number < len(layers):
        raise UsageError(f"layer {number}: this model has layers 0 (its input) to {len(layers) - 1}")
    return layers[number]


class VectorsSpec(TaskSpec):
    """Answer every line with its vector; judged by how well angles agree with what people find alike."""

    summing: SummingUpSpec = SummingUpSpec()
    longest: int | None = Field(default=None, ge=3)
    """Tokens that are read of a text, marks counted; a longer one is cut without a word, as its makers do.
    null: as many as the model can."""

    def build(self, means: Means) -> "Vectors":
        return Vectors(cast(Reads, means.model), means.lexicon["text"], means.device, self, means.engines)

    def summing_up(self) -> SummingUpSpec:
        return self.summing


@dataclass
class Vectors(Task):
    model: Reads
    tokenizer: Tokenizer
    device: torch.device
    spec: VectorsSpec
    engines: Engines = NO_ENGINE

    def refusal(self, wishes: Wishes, keep: bool) -> str | None:
        return self.engines.refusal_to_read(self.spec.summing.layer)

    def answer(self, asked: Asked) -> list[Answer]:
        """The vector of every text, as JSON."""
        vectors = self._embedder.texts(asked.texts, self.spec.summing, asked.first_line, asked.truncate)
        rows = self.readings(asked.texts, asked.first_line, asked.truncate)
        answers, engine = [], answering(self.engines.reading, self.refusal(asked.wishes, asked.keep))
        for text, reading, vector in zip(asked.texts, rows, vectors, strict=True):
            shown = json.dumps([round(float(value), 6) for value in vector])
            candidate = Candidate(shown, [], [], 0.0, 0.0, finished=True)
            answers.append(Answer(text, self.tokenizer.pieces(reading.ids), [candidate], engine=engine))
        return answers

    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        raise UsageError("a vector is not a probability: use run, or eval with pairs of texts and a number")

    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """Cosine of two texts beside how alike people find them (Cer et al. 2017)."""
        if metric not in (None, "pearson", "spearman"):
            raise UsageError(f"--metric {metric}: vectors are judged by pearson and spearman")
        sides = list(zip(*(record[0].split(BETWEEN, 1) for record in records), strict=True))
        wanted = np.array([number_of(record[-1], line=line) for line, record in enumerate(records, start=1)])
        summing = self.spec.summing.model_copy(update={"normalise": True})
        one, other = (self._embedder.texts(side, summing, truncate=True) for side in sides)
        cosines = (one * other).sum(-1, dtype=np.float64)
        scores = {"spearman": spearman(cosines, wanted), "pearson": pearson(cosines, wanted)}
        first = metric or "spearman"
        scores = {first: scores[first]} | scores
        return Evaluation(scores, f"correlation of cosines|pairs:{len(records)}|ties:mean rank", len(records))

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        (reading,) = self.readings([source], truncate=True)
        tokens = tokens_of([reading], self.tokenizer.pad).to(self.device)
        read = self.tokenizer.pieces(reading.ids)
        return Written(lambda: self.model.layers(tokens), read, [], ["⟨vector⟩"], log_probs=(0.0,))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        most = self.spec.longest or (self.model.longest if truncate else None)
        return marked(self.tokenizer, texts, most)

    @property
    def _embedder(self) -> Embedder:
        return Embedder(self.model, self, self.tokenizer, self.device, self.engines.reading)
