"""Answers quoted from a text: on a line a question, a tab, and the text that is read for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.sequences import Places, Tokens
from regard.core.spec import Plain
from regard.data.examples import tokens_of
from regard.data.layouts import Reading
from regard.data.quote_files import BETWEEN
from regard.data.quotes import NOTHING, QuotesSpec, Windows
from regard.data.tokenizers import Tokenizer
from regard.tasks.answers import Answer, Candidate, Scored
from regard.tasks.quote_scores import quote_scores
from regard.tasks.task import Asked, Evaluation, Means, Task, TaskSpec, Written, windows


@runtime_checkable
class Pointer(Protocol):
    """What a model must be able to do to answer."""

    def judge(self, tokens: Tokens, places: Places | None) -> Float[Tensor, "batch *asked scores"]: ...


class QuotingSpec(TaskSpec):
    rows: int = Field(default=16, ge=1)
    """Rows that are read side by side."""
    longest_answer: int = Field(default=30, ge=1)
    """Most tokens of an answer."""
    threshold: float = 0.0
    """Where a text may hold no answer: how much likelier than none a quote must be, as a logarithm."""

    def build(self, means: Means) -> "Quoting":
        return Quoting(
            cast(Pointer, means.model),
            means.lexicon["text"],
            cast(QuotesSpec, means.data),
            means.device,
            max(means.search.answers, 1),
            NOTHING in means.lexicon.labels["kind"],
            self,
        )


class Odds(NamedTuple):
    """How much likelier than none every quote of a text is."""

    table: Float[Tensor, "tokens lengths"]
    """[i, n]: the logarithm for the quote from token i to token i + n; −∞ where there is none."""
    offsets: list[tuple[int, int]]

    def slice(self, begin: int, length: int) -> tuple[int, int]:
        return self.offsets[begin][0], self.offsets[begin + length][1]


@dataclass
class Quoting(Task):
    model: Pointer
    tokenizer: Tokenizer
    data: QuotesSpec
    device: torch.device
    best: int
    abstains: bool
    """Whether there were texts without an answer to learn from."""
    spec: QuotingSpec

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """The most probable quotes of every text; the empty one says that there is none."""
        pairs = [
            self.data.parted(text, line) for line, text in enumerate(asked.texts, start=asked.first_line)
        ]
        read = self.data.windows_of(self.tokenizer, pairs)
        return [
            Answer(text, self.tokenizer.pieces(own.parts[0].reading.ids), self._candidates(pair[1], odds))
            for text, pair, own, odds in zip(asked.texts, pairs, read, self._odds(read), strict=True)
        ]

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p of an answer, wherever it stands in its text; of several right ones, of the first."""
        pairs = [self.data.parted(record[0], line) for line, record in enumerate(records, start=first_line)]
        scored = []
        for record, pair, odds in zip(
            records, pairs, self._odds(self.data.windows_of(self.tokenizer, pairs)), strict=True
        ):
            wanted, total = record[1].partition(BETWEEN)[0], self._total(odds)
            found = [-total] if self.abstains and not wanted else []
            for place in odds.table.isfinite().nonzero().tolist() if wanted else []:
                begin, end = odds.slice(*place)
                if pair[1][begin:end] == wanted:
                    found.append(float(odds.table[*place]) - total)
            value = float(torch.tensor(found).logsumexp(0)) if found else -math.inf
            scored.append(Scored(record[0], wanted, [wanted], [value]))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        if metric not in (None, "f1", "exact_match"):
            raise UsageError(f"--metric {metric}: quoted answers are judged by f1 and exact_match")
        answers = [answer.text for answer in self.answer(Asked([record[0] for record in records]))]
        scores = quote_scores(answers, [record[1].split(BETWEEN) for record in records])
        scores = {metric or "f1": scores[metric or "f1"]} | scores
        kind = "2.0" if self.abstains else "1.1"
        return Evaluation(scores, f"SQuAD|rules:{kind}|normalised|best of right answers", len(records))

    @torch.inference_mode()
    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        target = target.text if isinstance(target, Candidate) else target
        pair = self.data.parted(source, 1)
        (read,) = self.data.windows_of(self.tokenizer, [pair])
        (odds,) = self._odds([read])
        best = self._candidates(pair[1], odds)[0]
        text = best.text if target is None else target.partition(BETWEEN)[0]
        log_prob = best.log_prob if target is None else self.score([(source, text)])[0].log_prob
        reading = read.parts[0].reading
        for part in read.parts:
            held = self.tokenizer.decode(part.reading.ids)
            if text and text in held:
                reading = part.reading
                break
        return Written(
            lambda: self._judge([reading]),
            self.tokenizer.pieces(reading.ids),
            [],
            [text],
            log_probs=(log_prob,),
        )

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        """Any texts, each by itself."""
        return self.data.layout.alone(self.tokenizer, texts, self.data.longest)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def _candidates(self, context: str, odds: Odds) -> list[Candidate]:
        """Best first; quotes of the same characters count once, since tokens differ."""
        total, flat = self._total(odds), odds.table.flatten()
        values, places = flat.topk(min(self.best, int(flat.isfinite().sum())))
        found = list[Candidate]()
        for value, place in zip(values.tolist(), places.tolist(), strict=True):
            begin, end = odds.slice(*divmod(place, odds.table.shape[1]))
            facts = {"begin": begin, "end": end, "probability": math.exp(value - total)}
            found.append(_candidate(context[begin:end], value - total, value, facts))
        if self.abstains:
            nothing = {"begin": None, "end": None, "probability": math.exp(-total)}
            over = sum(candidate.score > self.spec.threshold for candidate in found)
            found.insert(over, _candidate("", -total, self.spec.threshold, nothing))
        return found[: self.best] or [_candidate("", -total, 0.0, {"begin": None, "end": None})]

    def _total(self, odds: Odds) -> float:
        """The logarithm of all odds together, those of none among them where that is an answer."""
        every = odds.table.flatten()
        if self.abstains or not bool(every.isfinite().any()):
            every = torch.cat((every, torch.zeros(1)))
        return float(every.logsumexp(0))

    def _odds(self, read: Sequence[Windows]) -> list[Odds]:
        """Of every text over all its windows; where they overlap, the surer one counts."""
        flat = [part for own in read for part in own.parts]
        order = sorted(range(len(flat)), key=lambda number: len(flat[number].reading.ids))
        scores = dict[int, Tensor]()
        for numbers in windows(order, self.spec.rows):
            judged, places = self._judge([flat[number].reading for number in numbers])
            for number, row, real in zip(numbers, judged.float().cpu(), places.real.cpu(), strict=True):
                scores[number] = row[real]
        counted, found = iter(range(len(flat))), []
        for own in read:
            table = torch.full((len(own.offsets), self.spec.longest_answer), -torch.inf)
            for part in own.parts:
                odds = _quotes(scores[next(counted)], self.spec.longest_answer)
                held = slice(part.first, part.first + len(odds))
                table[held] = torch.maximum(table[held], odds)
            # A token that stands for no character cannot begin or end a quote.
            empty = torch.tensor([begin == end for begin, end in own.offsets])
            table[empty] = -torch.inf
            last = torch.arange(len(table))[:, None] + torch.arange(table.shape[1])
            table[empty[last.clamp_max(len(table) - 1)]] = -torch.inf
            found.append(Odds(table, own.offsets))
        return found

    def _judge(self, readings: Sequence[Reading]) -> tuple[Tensor, Places]:
        tokens = tokens_of(readings, self.tokenizer.pad).to(self.device)
        places = Places.pad([reading.places for reading in readings]).to(self.device)
        return self.model.judge(tokens, places), places


def _quotes(scores: Float[Tensor, "places 2"], longest: int) -> Float[Tensor, "tokens lengths"]:
    """S·T_i + E·T_j over what both say of the place of nothing, for i ≤ j (Devlin et al. 2019 §4.3)."""
    begins, ends = (scores[1:] - scores[0]).unbind(1)
    padded = torch.cat((ends, ends.new_full((longest - 1,), -torch.inf)))
    return begins[:, None] + padded.unfold(0, longest, 1)


def _candidate(text: str, log_prob: float, score: float, facts: Mapping[str, Plain]) -> Candidate:
    return Candidate(text, [text], [log_prob], log_prob, score, finished=True, facts=dict(facts))
