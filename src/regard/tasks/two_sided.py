"""Words between words, by one model that reads from both sides: p(w) ∝ p→(w | left) p←(w | right)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Memory, Tokens
from regard.data.layouts import Reading
from regard.data.letters import words_of
from regard.data.tokenizers import Tokenizer
from regard.parts.spelling import spelled
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.blanks import BLANK, ranked
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written


@runtime_checkable
class TwoWayModel(Protocol):
    """What a model must be able to do to answer."""

    def read(self, tokens: Tokens) -> Memory: ...
    def ways(
        self, memory: Memory
    ) -> tuple[Float[Tensor, "batch time half"], Float[Tensor, "batch time half"]]: ...
    def log_probs(self, x: Float[Tensor, "rows half"]) -> Float[Tensor, "rows vocabulary"]: ...


class Words(NamedTuple):
    """Tokens of a text, and how they are spelled there."""

    ids: list[int]
    words: list[str]

    def __add__(self, other: "Words") -> "Words":  # type: ignore[override]  # not as tuples are
        return Words(self.ids + other.ids, self.words + other.words)


class TwoSidedSpec(TaskSpec):
    window: int = Field(default=256, ge=2)
    """Tokens that are read together when a long text is judged …"""
    context: int = Field(default=64, ge=0)
    """… and those at each of its sides that are read but not judged there."""

    @model_validator(mode="after")
    def _judges_something(self) -> "TwoSidedSpec":
        if self.window <= 2 * self.context:
            raise ValueError(
                f"window={self.window} leaves nothing to judge between two sides of context={self.context}"
            )
        return self

    def build(self, means: Means) -> "TwoSided":
        model = cast(TwoWayModel, means.model)
        return TwoSided(model, means.lexicon["text"], means.device, means.search.answers, self)


@dataclass
class TwoSided(Task):
    model: TwoWayModel
    tokenizer: Tokenizer
    device: torch.device
    best: int
    spec: TwoSidedSpec

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The likeliest tokens for the one ``___`` of every text; without one, those that come next."""
        return [self._fill(text, line) for line, text in enumerate(asked.texts, start=asked.first_line)]

    def _fill(self, text: str, line: int) -> Answer:
        if text.count(BLANK) > 1:
            raise DataError(f"expected one {BLANK} to fill, found {text.count(BLANK)}", line=line)
        left, right = self._sides(text)
        log_probs = self.model.log_probs(self._ways(left)[0][-1:])
        if right.ids:
            log_probs = log_probs + self.model.log_probs(self._ways(right)[1][:1])
        read = [token for token in left.ids + right.ids if token != self.tokenizer.end]
        return ranked(text, log_probs[0].log_softmax(-1), self.tokenizer, self.best, read)

    def _sides(self, text: str) -> tuple[Words, Words]:
        """What stands before the blank and after it; nothing is known after a text without one."""
        left, blank, right = text.partition(BLANK)
        after = self._words(right.strip()) + self._end if blank else Words([], [])
        return self._end + self._words(left.strip()), after

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p of every token given all others of its text."""
        scored = []
        for record in records:
            words = self._words(record[0])
            values = self._judged(self._end + words + self._end)[2]
            scored.append(Scored("", record[0], self.tokenizer.pieces(words.ids), values.tolist()))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """Perplexity of both directions, of each, and of every word given both its sides."""
        if metric is not None:
            raise UsageError(f"--metric {metric}: words between words are judged by their perplexity")
        stream = self._end
        for record in records:
            stream += self._words(record[0]) + self._end
        forward, backward, both = (-float(values.double().mean()) for values in self._judged(stream))
        scores = {
            "perplexity": _exp((forward + backward) / 2),
            "forward_perplexity": _exp(forward),
            "backward_perplexity": _exp(backward),
            "two_sided_perplexity": _exp(both),
        }
        context = f"{self.spec.context}-{self.spec.window}"
        signature = f"perplexity|tokens:{len(stream.ids) - 2}|context:{context}|mean of both directions"
        return Evaluation(scores, signature, len(records))

    def _judged(self, stream: Words) -> tuple[Tensor, Tensor, Tensor]:
        """log p of every token but the first and the last: from the left, from the right, from both sides."""
        ids = torch.tensor(stream.ids, device=self.device)
        found = list[Tensor]()
        for begin, first, last, end in self._windows(len(ids)):
            ahead, back = self._ways(Words(stream.ids[begin:end], stream.words[begin:end]))
            seen = self.model.log_probs(ahead[first - 1 - begin : last - 1 - begin])
            foreseen = self.model.log_probs(back[first + 1 - begin : last + 1 - begin])
            each = torch.stack((seen, foreseen, (seen + foreseen).log_softmax(-1)))
            found.append(each.gather(-1, ids[first:last].expand(3, -1)[..., None])[..., 0].cpu())
        forward, backward, both = torch.cat(found, dim=1) if found else torch.zeros(3, 0)
        return forward, backward, both

    def _windows(self, tokens: int) -> Iterator[tuple[int, int, int, int]]:
        """Where to read from, judge from, judge to and read to."""
        room = self.spec.window - 2 * self.spec.context
        for first in range(1, tokens - 1, room):
            last = min(first + room, tokens - 1)
            yield (
                max(0, first - 1 - self.spec.context),
                first,
                last,
                min(tokens, last + 1 + self.spec.context),
            )

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        target = target.text if isinstance(target, Candidate) else target
        (answer,) = self.answer(Asked([source]))
        found = answer.candidates[0]
        left, right = self._sides(source)
        return Written(
            lambda: self._ways(left + right),
            self.tokenizer.pieces(left.ids + right.ids),
            [],
            [target or found.text],
            log_probs=(found.log_prob,),
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        rows = [self._end + self._words(text) + self._end for text in texts]
        return [Reading(row.ids, len(row.ids), [], words=tuple(row.words)) for row in rows]

    def shown(self, source: str, answer: str) -> str:
        return source.replace(BLANK, answer) if BLANK in source else f"{source} {answer}".strip()

    @property
    def _end(self) -> Words:
        return Words([self.tokenizer.end], [""])

    def _words(self, text: str) -> Words:
        return Words(self.tokenizer.encode(text), words_of(self.tokenizer, text)) if text else Words([], [])

    def _ways(self, row: Words) -> tuple[Float[Tensor, "time half"], Float[Tensor, "time half"]]:
        ids: Int[Tensor, "1 time"] = torch.tensor([row.ids], device=self.device)
        letters = torch.from_numpy(spelled(row.words))[None].to(self.device)
        forward, backward = self.model.ways(self.model.read(Tokens.whole(ids)._replace(letters=letters)))
        return forward[0], backward[0]


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
