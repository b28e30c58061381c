"""What vectors of words know: which words are near, what a sum of words is near, which word is to a third
as the second is to the first.

``king``; ``king - man + woman``; ``man : king :: woman : ?``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.errors import DataError, UsageError, nearest
from regard.data.tokenizers import Tokenizer
from regard.data.words import words_of
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.correlation import spearman
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written, windows

_ANALOGY = re.compile(r"\s*(\S+)\s*:\s*(\S+)\s*::\s*(\S+)\s*:\s*\?\s*")
_TOGETHER = 256
"""Questions that are compared with the whole vocabulary at once."""


@runtime_checkable
class HasDirections(Protocol):
    def directions(self) -> Float[Tensor, "vocabulary width"]: ...


class WordVectorsTaskSpec(TaskSpec):
    def build(self, means: Means) -> "WordVectorsTask":
        return WordVectorsTask(cast(HasDirections, means.model), means.lexicon["text"], means.search.answers)


class Sum(NamedTuple):
    """Words to be added and taken away, by number."""

    numbers: list[int]
    signs: list[float]


@dataclass
class WordVectorsTask(Task):
    model: HasDirections
    tokenizer: Tokenizer
    best: int

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The nearest words, by cosine; those that were asked with are left out."""
        sums = [self._sum(text, line) for line, text in enumerate(asked.texts, start=asked.first_line)]
        values, numbers = self._nearest(sums, self.best)
        return [
            Answer(
                text,
                [self._names[number] for number in asked_for.numbers],
                [
                    Candidate(self._names[number], [self._names[number]], [], 0.0, value, finished=True)
                    for value, number in zip(row.tolist(), found.tolist(), strict=True)
                ],
            )
            for text, asked_for, row, found in zip(asked.texts, sums, values, numbers, strict=True)
        ]

    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        raise UsageError("a vector is not a probability: use eval, or run")

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """Rank correlation with what people said of pairs of words; share of analogies that come out."""
        judge = self._alike if len(records[0]) == 3 else self._analogies
        evaluation = judge(records)
        if metric not in (None, evaluation.metric):
            raise UsageError(f"--metric {metric}: these questions are judged by {evaluation.metric}")
        return evaluation

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        target = target.text if isinstance(target, Candidate) else target
        (answer,) = self.answer(Asked([source]))
        return Written(lambda: None, answer.source_pieces, [], [target or answer.text], log_probs=(0.0,))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def shown(self, source: str, answer: str) -> str:
        """With its cosine."""
        if not answer:
            return answer
        point = self._points([self._sum(source, 1)])[0]
        return f"{answer}\t{float(self._directions[self._known[answer]] @ point):.4f}"

    def number(self, word: str) -> int | None:
        """Of a word as it is, or in small letters."""
        found = self._known.get(word)
        return self._known.get(word.lower()) if found is None else found

    @cached_property
    def _known(self) -> dict[str, int]:
        return words_of(self.tokenizer)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {number: word for word, number in self._known.items()}

    @cached_property
    def _directions(self) -> Float[Tensor, "vocabulary width"]:
        return self.model.directions()

    @cached_property
    def _words(self) -> Int[Tensor, "words"]:
        """All that may be an answer."""
        return torch.tensor(sorted(self._names), device=self._directions.device)

    def _sum(self, text: str, line: int) -> Sum:
        if (found := _ANALOGY.fullmatch(text)) is not None:
            first, second, third = (self._number(word, line) for word in found.groups())
            return Sum([second, first, third], [1.0, -1.0, 1.0])
        if not (parts := text.split()):
            raise DataError("expected a word, found nothing", line=line)
        numbers, signs, sign = list[int](), list[float](), 1.0
        for place, part in enumerate(parts):
            # A sign stands between words; elsewhere it is a word itself.
            if part in ("+", "-", "−") and 0 < place < len(parts) - 1 and len(numbers) == len(signs):
                sign = 1.0 if part == "+" else -1.0
                continue
            numbers.append(self._number(part, line))
            signs.append(sign)
            sign = 1.0
        return Sum(numbers, signs)

    def _number(self, word: str, line: int) -> int:
        number = self.number(word)
        if number is None:
            raise DataError(f"there is no vector for {word!r}{nearest(word, self._known)}", line=line)
        return number

    def _points(self, sums: Sequence[Sum]) -> Float[Tensor, "sums width"]:
        """Where sums of directions point (3CosAdd: Mikolov et al. 2013c, Levy and Goldberg 2014 eq. 3)."""
        directions = self._directions
        points = [
            (directions[some.numbers] * torch.tensor(some.signs, device=directions.device)[:, None]).sum(0)
            for some in sums
        ]
        return nn.functional.normalize(torch.stack(points), dim=-1)

    def _nearest(
        self, sums: Sequence[Sum], best: int
    ) -> tuple[Float[Tensor, "sums best"], Int[Tensor, "sums best"]]:
        values, numbers = list[Tensor](), list[Tensor]()
        candidates = self._directions[self._words]
        place = {number: index for index, number in enumerate(self._words.tolist())}
        for some in windows(sums, _TOGETHER):
            cosines = self._points(some) @ candidates.mT
            for row, asked in zip(cosines, some, strict=True):
                row[[place[number] for number in asked.numbers]] = -2.0
            # Never those that were asked with, however few words there are.
            most = max(1, min(best, len(candidates) - max(len(set(asked.numbers)) for asked in some)))
            value, index = cosines.topk(most)
            values.append(value)
            numbers.append(self._words[index])
        return torch.cat(values), torch.cat(numbers)

    def _alike(self, records: Sequence[tuple[str, ...]]) -> Evaluation:
        known = [
            (one, other, float(score))
            for one, other, score in ((self.number(r[0]), self.number(r[1]), r[2]) for r in records)
            if one is not None and other is not None
        ]
        if not known:
            raise DataError(f"of none of these {len(records)} pairs are both words known")
        ours, theirs, wanted = (list(column) for column in zip(*known, strict=True))
        found = (self._directions[ours] * self._directions[theirs]).sum(-1).double().cpu().numpy()
        value = spearman(found, np.array(wanted))
        signature = f"spearman|cosine|pairs:{len(known)} of {len(records)} known|ties:mean rank"
        return Evaluation({"spearman": value, "coverage": len(known) / len(records)}, signature, len(known))

    def _analogies(self, records: Sequence[tuple[str, ...]]) -> Evaluation:
        """a is to b as c is to d; questions with a word that is not known are left out, and told."""
        sums, wanted, headings = list[Sum](), list[int](), list[str]()
        for heading, *words in records:
            numbers = [self.number(word) for word in words]
            if any(number is None for number in numbers):
                continue
            a, b, c, d = cast(list[int], numbers)
            sums.append(Sum([b, a, c], [1.0, -1.0, 1.0]))
            wanted.append(d)
            headings.append(heading)
        if not sums:
            raise DataError(f"of none of these {len(records)} analogies are all words known")
        _, found = self._nearest(sums, 1)
        right = found[:, 0].cpu().numpy() == np.array(wanted)
        scores = {"accuracy": float(right.mean()), "coverage": len(sums) / len(records)}
        for heading in dict.fromkeys(headings):
            own = np.array([heading == one for one in headings])
            scores[f"accuracy: {heading}"] = float(right[own].mean())
        signature = f"accuracy|3CosAdd|analogies:{len(sums)} of {len(records)} known"
        return Evaluation(scores, signature, len(sums))
