"""A word from its two sides: p(w | left, right) ∝ p→(w | left) · p←(w | right).

The forward and the backward half of a bidirectional language model, each of which sees one side only; their
product is what both together find likely (Peters et al. 2018 §3.1 trains them so).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.data.tokenizers import Tokenizer
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written
from regard.tasks.windows import TextModel

BLANK = "___"
_CHUNK = 256


class BlanksSpec(TaskSpec):
    """A forward and a backward model, which a mixture holds in this order."""

    def build(self, means: Means) -> "Blanks":
        forward, backward = cast(Any, means.model).models
        return Blanks(forward, backward, means.lexicon["text"], means.device, means.search.answers)


@dataclass
class Blanks(Task):
    forward: TextModel
    backward: TextModel
    tokenizer: Tokenizer
    device: torch.device
    best: int = 1

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The likeliest tokens for the one ``___`` of every text."""
        return [self._fill(text, line) for line, text in enumerate(asked.texts, start=asked.first_line)]

    def _fill(self, text: str, line: int) -> Answer:
        if text.count(BLANK) != 1:
            raise DataError(f"expected one {BLANK} to fill, found {text.count(BLANK)}", line=line)
        left, right = (self.tokenizer.encode(side.strip()) for side in text.split(BLANK))
        return ranked(text, self._from_sides(left, right), self.tokenizer, self.best, [*left, *right])

    def _from_sides(self, left: list[int], right: list[int]) -> Float[Tensor, "vocabulary"]:
        end = self.tokenizer.end
        seen = _predictions(self.forward, self._tensor([end, *left]))[-1]
        foreseen = _predictions(self.backward, self._tensor([end, *right[::-1]]))[-1]
        return (seen + foreseen).log_softmax(-1)

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p of every token given all others of its text."""
        scored = []
        for record in records:
            ids = self.tokenizer.encode(record[0])
            values = self._log_probs([self.tokenizer.end, *ids, self.tokenizer.end])
            scored.append(Scored("", record[0], self.tokenizer.pieces(ids), values.tolist()))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """How likely the words of a text are, each from its two sides."""
        if metric is not None:
            raise UsageError(f"--metric {metric}: words between words are judged by their perplexity")
        stream = [self.tokenizer.end]
        for ids in self.tokenizer.encode_many([record[0] for record in records]):
            stream += [*ids, self.tokenizer.end]
        values = self._log_probs(stream)
        perplexity = math.exp(min(-float(values.double().mean()), 700.0))
        signature = f"perplexity|tokens:{len(values)}|context:both sides"
        return Evaluation({"two_sided_perplexity": perplexity}, signature, len(records))

    def _log_probs(self, stream: list[int]) -> Float[Tensor, "_"]:
        """Of every token but the first and the last."""
        ids = self._tensor(stream)
        ahead = _states(self.forward, ids[:-2])
        back = _states(self.backward, ids.flip(0)[:-2])
        found = []
        for begin in range(0, len(ids) - 2, _CHUNK):
            end = min(begin + _CHUNK, len(ids) - 2)
            # The state before token i+1 from the left is number i; from the right it is counted backwards.
            seen = self.forward.predict(ahead[begin:end]).log_softmax(-1)
            foreseen = self.backward.predict(back.flip(0)[begin:end]).log_softmax(-1)
            both = (seen + foreseen).log_softmax(-1)
            found.append(both.gather(-1, ids[begin + 1 : end + 1, None])[:, 0])
        return torch.cat(found).cpu() if found else torch.zeros(0)

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        raise UsageError("two models fill a blank together: look at one of them")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def shown(self, source: str, answer: str) -> str:
        return source.replace(BLANK, answer)

    def _tensor(self, ids: list[int]) -> Int[Tensor, "_"]:
        return torch.tensor(ids, dtype=torch.long, device=self.device)


def ranked(
    text: str, log_probs: Float[Tensor, "vocabulary"], tokenizer: Tokenizer, best: int, read: Sequence[int]
) -> Answer:
    """The likeliest tokens."""
    values, tokens = log_probs.topk(min(best, len(log_probs)))
    pieces = tokenizer.pieces(tokens.tolist())
    candidates = [
        Candidate(tokenizer.decode([token]), [piece], [value], value, value, finished=True)
        for token, piece, value in zip(tokens.tolist(), pieces, values.tolist(), strict=True)
    ]
    return Answer(text, tokenizer.pieces(read), candidates)


def _states(model: TextModel, ids: Int[Tensor, "_"]) -> Tensor:
    """What the model knows after every token, read in pieces with carried state."""
    state, found = model.start(1), []
    for begin in range(0, len(ids), _CHUNK):
        x, state = model.read(Tokens.whole(ids[None, begin : begin + _CHUNK]), state)
        found.append(x[0])
    return torch.cat(found)


def _predictions(model: TextModel, ids: Int[Tensor, "_"]) -> Tensor:
    return model.predict(_states(model, ids)).log_softmax(-1)
