"""From one sequence to another: translate, normalise, summarise, parse.

Lines go in and answers come out in the same order, whatever the batching. Empty lines stay empty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regard.core.errors import DataError
from regard.core.sequences import Tokens
from regard.core.state import State
from regard.data.batches import evaluation_batches
from regard.data.layouts import Reading
from regard.data.tokenizers import Tokenizer
from regard.search.constraints import Constraint, ForbiddenWords, ForcedPrefix
from regard.search.hypotheses import Hypothesis
from regard.search.kept import Kept, KeptSentence
from regard.search.required import RequiredWords
from regard.search.search import SearchSpec
from regard.tasks.answers import END, Answer, Candidate, Detail, Scored
from regard.tasks.engine import NO_ENGINE, Engine, Engines
from regard.tasks.metrics import metric_named
from regard.tasks.task import Asked, Audience, Evaluation, Means, Task, TaskSpec, Wishes, Written
from regard.tasks.unfolding import Hall, Unfolding


@runtime_checkable
class Transducer(Protocol):
    """What a model must be able to do to answer."""

    @property
    def longest_source(self) -> int | None: ...
    @property
    def longest_target(self) -> int | None: ...
    def start(self, source: Tokens) -> State: ...
    def read(self, tokens: Tokens, state: State) -> tuple[Float[Tensor, "batch time width"], State]: ...
    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]: ...
    def step(
        self, tokens: Int[Tensor, "rows"], state: State
    ) -> tuple[Float[Tensor, "rows vocabulary"], State]: ...


class TransductionSpec(TaskSpec):
    budget: int = Field(default=3000, ge=1)
    """Padded source tokens that are read together."""
    opening: int | None = Field(default=None, ge=0)
    """A token that is put in front of every source, where a model from elsewhere has learned to expect it."""

    def build(self, means: Means) -> "Transduction":
        source, target = (means.lexicon[side] for side in ("source", "target"))
        model = cast(Transducer, means.model)
        return Transduction(
            model, source, target, means.search, means.device, self.budget, means.engines, self.opening
        )


@dataclass
class Transduction(Task):
    model: Transducer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    search: SearchSpec
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    budget: int = 3000
    engines: Engines = NO_ENGINE
    opening: int | None = None

    @cached_property
    def _positions(self) -> tuple[int | None, int | None]:
        """Tokens that the model can read, and write: asked anew for every line, that would take a while."""
        return self.model.longest_source, self.model.longest_target

    def refusal(self, wishes: Wishes, keep: bool) -> str | None:
        return self.engines.refusal_to_search(self.search, wishes, keep)

    def answer(self, asked: Asked) -> list[Answer]:
        encoded = self._encode_sources(asked.texts, asked.first_line, asked.truncate)
        answers, left = dict[int, Answer](), list(encoded)
        for row, hypotheses in self._found_by_engine(encoded, asked):
            left[row] = []
            answers[row] = self._answer(
                asked.texts[row], encoded[row], hypotheses, asked.detail, engine=self.engines.searching
            )
        if any(left):
            for row, hypotheses, search in self._found_by_steps(left, asked):
                answers[row] = self._answer(asked.texts[row], left[row], hypotheses, asked.detail, search)
        return [answers.get(row) or Answer(text) for row, text in enumerate(asked.texts)]

    @torch.inference_mode()
    def _found_by_steps(
        self, encoded: Sequence[Sequence[int]], asked: Asked
    ) -> list[tuple[int, list[Hypothesis], KeptSentence | None]]:
        """What our own search finds, by row, with the whole search where it is kept."""
        everything, searcher = list[tuple[int, list[Hypothesis], KeptSentence | None]](), self.search.build()
        for rows in self._batches(encoded):
            longest = [self._longest(len(encoded[row])) for row in rows]
            numbers = [asked.number(row) for row in rows]
            kept = Kept() if asked.keep else None
            found = searcher(
                self.model.step,
                self.model.start(self._tokens([encoded[row] for row in rows])),
                torch.full((len(rows),), self.target_tokenizer.begin, device=self.device),
                self.target_tokenizer.end,
                torch.tensor(longest, device=self.device),
                [*self._constraints(asked.wishes, len(rows)), *self._heard(asked.audience, rows)],
                kept,
                numbers,
            )
            searches = [None if kept is None else kept.sentences[number] for number in numbers]
            everything += zip(rows, found, searches, strict=True)
        return everything

    def _found_by_engine(
        self, encoded: Sequence[Sequence[int]], asked: Asked
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """What an engine finds, by row; nothing where there is none, or none that can do what is asked."""
        engine, rows = self.engines.searching, [row for row, ids in enumerate(encoded) if ids]
        if asked.audience is not None and asked.audience.listens and self.search.steady:
            return
        if not rows or engine is None or engine.refusal(self.search, asked.wishes, asked.keep):
            return
        sources = [encoded[row] for row in rows]
        longest = [self._longest(len(ids)) for ids in sources]
        for place, hypotheses in engine.search(sources, longest, self.search, asked.detail, asked.share):
            if hypotheses:
                yield rows[place], hypotheses

    def _longest(self, source: int) -> int:
        longest, most = self.search.longest(source), self._positions[1]
        return longest if most is None else min(longest, most)

    def _answer(
        self,
        text: str,
        ids: Sequence[int],
        hypotheses: Sequence[Hypothesis],
        detail: Detail,
        search: KeptSentence | None = None,
        engine: Engine | None = None,
    ) -> Answer:
        pieces = [] if detail == "text" else [*self.source_tokenizer.pieces(ids[:-1]), END]
        candidates = [self._candidate(hypothesis, detail) for hypothesis in hypotheses]
        return Answer(text, pieces, candidates, search, "torch" if engine is None else engine.name)

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p(target | source), token by token."""
        sources = self._encode_sources([record[0] for record in records], first_line, truncate)
        targets = self.target_tokenizer.encode_many([record[1] for record in records])
        begin, end = self.target_tokenizer.begin, self.target_tokenizer.end
        scored = [Scored(*_pair(record), [], []) for record in records]
        for rows in self._batches(sources):
            given = self._tokens([[begin, *targets[row]] for row in rows])
            wanted = self._tokens([[*targets[row], end] for row in rows])
            state = self.model.start(self._tokens([sources[row] for row in rows]))
            hidden, _ = self.model.read(given, state)
            log_probs = self.model.predict(hidden).log_softmax(-1)
            chosen = log_probs.gather(-1, wanted.ids[..., None])[..., 0].cpu()
            for row, values in zip(rows, chosen, strict=True):
                pieces = [*self.target_tokenizer.pieces(targets[row]), END]
                scored[row] = Scored(*_pair(records[row]), pieces, values[: len(pieces)].tolist())
        return scored

    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """Answer all sources and judge the answers."""
        judge = metric_named(metric or "bleu")
        sources, references = ([record[side] for record in records] for side in (0, 1))
        score = judge.compute([answer.text for answer in self.stream(sources, detail="text")], references)
        return Evaluation({judge.name: score.value}, score.signature, len(records))

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        tokenizer, finished = self.target_tokenizer, True
        if isinstance(target, Candidate):
            ids, finished = target.tokens, target.finished
        else:
            ids = tokenizer.encode(
                self.answer(Asked([source], truncate=True))[0].text if target is None else target
            )
        tokens = self._tokens(self._encode_sources([source], 1, truncate=True))
        read = [*self.source_tokenizer.pieces(tokens.ids[0, :-1].tolist()), END]
        return Written(
            lambda: self.model.start(tokens),
            read[: tokens.ids.shape[1]],
            [tokenizer.begin, *ids, *([tokenizer.end] if finished else [])],
            tokenizer.pieces(ids),
        )

    def reading(self, text: str) -> Written:
        return self.written(text, "")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.target_tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        """As the encoder reads them; of an empty text there is its end."""
        rows = self._encode_sources(texts, first_line, truncate)
        return [Reading(ids or [self.source_tokenizer.end], len(ids), []) for ids in rows]

    def _tokens(self, rows: Sequence[Sequence[int]]) -> Tokens:
        return Tokens.pad(rows, self.source_tokenizer.pad).to(self.device)

    def _encode_sources(self, texts: Sequence[str], first_line: int, truncate: bool) -> list[list[int]]:
        """Token ids with the end token; an empty list for an empty line."""
        front = [] if self.opening is None else [self.opening]
        around, longest, encoded = len(front) + 1, self._positions[0], list[list[int]]()
        for line, ids in enumerate(self.source_tokenizer.encode_many(list(texts)), start=first_line):
            if longest is not None and len(ids) + around > longest:
                if not truncate:
                    raise DataError(
                        f"{len(ids) + around} tokens, but this model has {longest} positions "
                        "(--truncate answers its beginning)",
                        line=line,
                    )
                ids = ids[: longest - around]
            encoded.append([*front, *ids, self.source_tokenizer.end] if ids else [])
        return encoded

    def _batches(self, encoded: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Rows of similar length together; empty ones are left out."""
        rows = np.array([row for row, ids in enumerate(encoded) if ids], dtype=np.int64)
        lengths = np.array([[len(encoded[row])] for row in rows], dtype=np.int64).reshape(-1, 1)
        if len(rows):  # one that is longer than the budget is read alone
            for batch in evaluation_batches(lengths, max(self.budget, int(lengths.max()))):
                yield rows[batch].tolist()

    def _constraints(self, wishes: Wishes, sentences: int) -> list[Constraint]:
        constraints: list[Constraint] = []
        if wishes.prefix:
            constraints.append(ForcedPrefix([self.target_tokenizer.encode(wishes.prefix)] * sentences))
        if wishes.begin:
            constraints = [ForcedPrefix([wishes.begin] * sentences)]
        if wishes.forbid:
            forbidden = [ids for word in wishes.forbid for ids in self.target_tokenizer.spellings(word)]
            constraints.append(ForbiddenWords([forbidden] * sentences))
        if wishes.require:
            required = [self.target_tokenizer.spellings(word) for word in wishes.require]
            constraints.append(RequiredWords([required] * sentences, self.target_tokenizer.end))
        return constraints

    def _heard(self, audience: Audience | None, rows: Sequence[int]) -> list[Constraint]:
        if audience is None:
            return []
        hall = Hall(audience, rows, lambda _: Unfolding(self.target_tokenizer.decode))
        return hall.constraints(self.target_tokenizer.end, self.search.steady)

    def _candidate(self, hypothesis: Hypothesis, detail: Detail) -> Candidate:
        pieces = list[str]()
        if detail != "text":
            end = [END] if hypothesis.finished else []
            pieces = [*self.target_tokenizer.pieces(hypothesis.tokens), *end]
        return Candidate(
            text=self.target_tokenizer.decode(hypothesis.tokens),
            pieces=pieces,
            token_log_probs=hypothesis.token_log_probs,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            finished=hypothesis.finished,
            tokens=hypothesis.tokens,
        )


def _pair(record: tuple[str, ...]) -> tuple[str, str]:
    source, target = record
    return source, target
