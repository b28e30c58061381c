"""Going on with a text: prompts in, continuations out; and how probable a given text is."""

import math
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from jaxtyping import Int
from pydantic import Field
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.data.layouts import Reading
from regard.data.tokenizers import Tokenizer
from regard.search.constraints import Constraint, ForbiddenWords, ForcedPrefix
from regard.search.hypotheses import Hypothesis
from regard.search.kept import Kept, KeptSentence
from regard.search.listening import StopTexts, cut_at
from regard.search.search import SearchSpec
from regard.tasks.answers import END, Answer, Candidate, Scored
from regard.tasks.blanks import BlanksSpec
from regard.tasks.engine import NO_ENGINE, Engine, Engines
from regard.tasks.judging import Judge
from regard.tasks.task import NO_WISHES, Asked, Evaluation, Means, Task, TaskSpec, Wishes, Written
from regard.tasks.unfolding import Hall, Unfolding
from regard.tasks.windows import Sliding, TextModel, found_in_windows

_TOGETHER = 32
"""Prompts that are continued side by side."""


class ContinuationSpec(TaskSpec):
    carries: bool = False
    """The model was trained to carry its state along, and is judged so; otherwise windows are read alone."""
    window: int = Field(default=128, ge=2)
    """Tokens that are read together when a long text is judged."""
    context: int = Field(default=64, ge=0)
    """Where windows are read alone: tokens in front of each that are read but not judged again."""
    backwards: bool = False
    """The model reads and writes from the last token to the first."""
    opened: bool = True
    """Read an end token, which documents begin after, before a prompt; otherwise only where there is none."""

    def build(self, means: Means) -> "Continuation":
        model = cast(TextModel, means.model)
        return Continuation(model, means.lexicon["text"], means.search, means.device, self, means.engines)

    def together(self, others: Sequence[TaskSpec]) -> TaskSpec:
        """One that does not carry its state cannot be asked as if it did; two directions meet at a blank."""
        everyone = [self, *(cast(ContinuationSpec, other) for other in others)]
        directions = [one.backwards for one in everyone]
        if directions == [False, True]:
            return BlanksSpec()
        if len(set(directions)) > 1:
            raise UsageError(
                "runs that are asked as one read in one direction; only a forward run with one backward run "
                "after it do not: they fill blanks"
            )
        return ContinuationSpec(
            carries=all(one.carries for one in everyone),
            window=min(one.window for one in everyone),
            context=min(one.context for one in everyone),
            backwards=self.backwards,
            opened=all(one.opened for one in everyone),
        )


@dataclass
class Continuation(Task):
    begins: ClassVar[bool] = True
    needs_answer: ClassVar[bool] = False

    model: TextModel
    tokenizer: Tokenizer
    search: SearchSpec
    device: torch.device
    spec: ContinuationSpec
    engines: Engines = NO_ENGINE

    # Writing

    def refusal(self, wishes: Wishes, keep: bool) -> str | None:
        return self.engines.refusal_to_search(self.search, wishes, keep)

    def refusal_to_evaluate(self) -> str | None:
        return "a text is judged by our own steps"

    @torch.inference_mode()
    def answer(self, asked: Asked) -> list[Answer]:
        """How each text goes on, the space between included; an empty one is begun."""
        texts, wishes, audience = asked.texts, asked.wishes, asked.audience
        lines = enumerate(texts, start=asked.first_line)
        prompts = [self._prompt(text, line, asked.truncate) for line, text in lines]
        answers = [Answer(text) for text in texts]
        engine, by_engine = self.engines.searching, self._found_by_engine(prompts, asked)
        for row, hypotheses in by_engine.items():
            answers[row] = self._answer(texts[row], prompts[row], hypotheses, wishes.stop, engine=engine)
        left = [row for row in range(len(texts)) if row not in by_engine]
        by_length = sorted(left, key=lambda row: len(prompts[row]))
        for begin in range(0, len(by_length), _TOGETHER):
            rows = by_length[begin : begin + _TOGETHER]
            kept = Kept() if asked.keep else None
            numbers = [asked.number(row) for row in rows]
            constraints = self._constraints(wishes, len(rows))
            if audience is not None:
                hall = Hall(audience, rows, lambda row: self._unfolding(prompts[row], wishes.stop))
                constraints += hall.constraints(
                    self.tokenizer.end, self.search.steady and not self.spec.backwards
                )
            found = self._search([prompts[row] for row in rows], constraints, kept, numbers)
            for row, number, hypotheses in zip(rows, numbers, found, strict=True):
                search = kept.sentences[number] if kept is not None else None
                answers[row] = self._answer(texts[row], prompts[row], hypotheses, wishes.stop, search)
        return answers

    def _found_by_engine(self, prompts: Sequence[list[int]], asked: Asked) -> dict[int, list[Hypothesis]]:
        """What an engine finds, by row; nothing where there is none, or none that can do what is asked."""
        engine, search, longest = self.engines.searching, self.search, self.search.longest(0)
        listens = asked.audience is not None and asked.audience.listens and search.steady
        if not prompts or engine is None or listens or self.refusal(asked.wishes, asked.keep):
            return {}

        def find(given: Sequence[list[int]], room: Sequence[int]) -> list[list[Hypothesis] | None]:
            by_row = dict(engine.search(given, room, search, asked.detail, asked.share))
            return [by_row[row] for row in range(len(given))]

        if self.model.longest is None or not search.steady:
            found = find(prompts, [longest] * len(prompts))
        else:
            found = found_in_windows(
                find,
                prompts,
                longest,
                self.model.longest,
                search.alpha,
            )
        return {row: hypotheses for row, hypotheses in enumerate(found) if hypotheses}

    def _longest(self, prompts: int) -> Int[Tensor, "prompts"]:
        return torch.full((prompts,), self.search.longest(0), device=self.device)

    def _answer(
        self,
        text: str,
        prompt: list[int],
        hypotheses: Sequence[Hypothesis],
        stops: Sequence[str],
        search: KeptSentence | None = None,
        engine: Engine | None = None,
    ) -> Answer:
        return Answer(
            text,
            self.tokenizer.pieces(self._without_opening(prompt)),
            [self._candidate(prompt, hypothesis, stops) for hypothesis in hypotheses],
            search,
            "torch" if engine is None else engine.name,
        )

    def shown(self, source: str, answer: str) -> str:
        return answer + source if self.spec.backwards else source + answer

    def pieces_of(self, prompt: str, wishes: Wishes = NO_WISHES) -> Iterator[str]:
        """The continuation of one prompt, bit by bit, as it is written."""
        if not self.search.steady:
            raise UsageError("a beam knows its answer only at the end: stream with --greedy or --sample")
        if self.spec.backwards:
            raise UsageError("a model that writes backwards has nothing to show before the end")
        heard: queue.Queue[str | BaseException | None] = queue.Queue()
        listener = _Listener(heard)

        def work() -> None:
            try:
                (answer,) = self.answer(Asked([prompt], wishes, truncate=True, audience=listener))
                heard.put(answer.text[listener.said :])
                heard.put(None)
            except BaseException as error:  # belongs to whoever listens
                heard.put(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while (item := heard.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                if item:
                    yield item
        finally:
            listener.gone = True
            thread.join()

    def _unfolding(self, prompt: Sequence[int], stops: Sequence[str]) -> Unfolding:
        return Unfolding(lambda ids: self._after(prompt, ids), stops)

    def _search(
        self,
        prompts: Sequence[Sequence[int]],
        constraints: Sequence[Constraint],
        kept: Kept | None,
        numbers: Sequence[int],
    ) -> list[list[Hypothesis]]:
        before = Tokens.pad([prompt[:-1] for prompt in prompts], self.tokenizer.pad).to(self.device)
        first = torch.tensor([prompt[-1] for prompt in prompts], device=self.device)
        if self.model.longest is None:
            step, state = self.model.step, self.model.start(len(prompts))
            if before.ids.shape[1]:
                _, state = self.model.read(before, state)
        else:
            sliding = Sliding(self.model, self.model.longest, self.tokenizer.pad)
            step, state = sliding.step, sliding.start(len(prompts), self.device)
            if before.ids.shape[1]:
                state = sliding.read(before, state)
        longest, end = self._longest(len(prompts)), self.tokenizer.end
        return self.search.build()(step, state, first, end, longest, constraints, kept, numbers)

    def _prompt(self, text: str, line: int, truncate: bool) -> list[int]:
        """The text, and before it, where it is wanted or there is no text, an end token."""
        ids = self.tokenizer.encode(text)
        opening = [self.tokenizer.end] if self.spec.opened or not ids else []
        longest = self.model.longest
        if longest is not None and len(opening) + len(ids) > longest:
            if not truncate:
                raise DataError(
                    f"{len(ids)} tokens, but this model has {longest} positions "
                    "(--truncate goes on from its last ones)",
                    line=line,
                )
            ids = ids[len(opening) + len(ids) - longest :]
        return [*opening, *self._turned(ids)]

    def readings(self, texts: Sequence[str], first_line: int = 1, truncate: bool = False) -> list[Reading]:
        rows = [self._prompt(text, line, truncate) for line, text in enumerate(texts, start=first_line)]
        return [Reading(ids, len(ids), []) for ids in rows]

    def _without_opening(self, prompt: list[int]) -> list[int]:
        """What stands for text: no text is ever encoded as an end token."""
        return prompt[1:] if prompt[0] == self.tokenizer.end else prompt

    def _constraints(self, wishes: Wishes, sentences: int) -> list[Constraint]:
        tokenizer, constraints = self.tokenizer, list[Constraint]()
        if wishes.require:
            raise UsageError(
                "--require asks for words in an answer; a continuation cannot be made to have any"
            )
        if wishes.prefix:
            constraints.append(ForcedPrefix([self._turned(tokenizer.encode(wishes.prefix))] * sentences))
        if wishes.begin:
            constraints = [ForcedPrefix([wishes.begin] * sentences)]
        if wishes.forbid:
            spelled = [self._turned(ids) for word in wishes.forbid for ids in tokenizer.spellings(word)]
            constraints.append(ForbiddenWords([spelled] * sentences))
        if wishes.stop:
            constraints.append(StopTexts(wishes.stop, self._decode, tokenizer.end))
        return constraints

    def _candidate(self, prompt: Sequence[int], hypothesis: Hypothesis, stops: Sequence[str]) -> Candidate:
        text = self._after(prompt, hypothesis.tokens)
        whole, pieces = cut_at(text, stops), self.tokenizer.pieces(hypothesis.tokens)
        own, log_prob = hypothesis.token_log_probs, hypothesis.log_prob
        if whole != text and hypothesis.finished:  # the end was ordered, not chosen
            own = own[: len(pieces)]
            log_prob = sum(own, 0.0)
        elif hypothesis.finished:
            pieces = [*pieces, END]
        finished = hypothesis.finished or whole != text
        tokens = hypothesis.tokens
        return Candidate(whole, pieces, own, log_prob, hypothesis.score, finished, tokens=tokens)

    # Judging

    @torch.inference_mode()
    def score(
        self, records: Sequence[tuple[str, ...]], first_line: int = 1, truncate: bool = False
    ) -> list[Scored]:
        """log p(text), token by token, each text by itself."""
        scored = []
        for record in records:
            ids = self._turned(self.tokenizer.encode(record[0]))
            values = self._judge.log_probs([self.tokenizer.end, *ids, self.tokenizer.end])
            pieces = [*self.tokenizer.pieces(ids), END]
            if self.spec.backwards:
                pieces, values = [*pieces[-2::-1], END], torch.cat((values[:-1].flip(0), values[-1:]))
            scored.append(Scored("", record[0], pieces, values.tolist()))
        return scored

    @torch.inference_mode()
    def evaluate(self, records: Sequence[tuple[str, ...]], metric: str | None = None) -> Evaluation:
        """Perplexity per token and per word, bits per character, of the documents one after another."""
        if metric is not None:
            raise UsageError(f"--metric {metric}: a language model is judged by its perplexity")
        texts = [record[0] for record in records]
        end, stream = self.tokenizer.end, list[int]()
        for ids in self.tokenizer.encode_many(texts):
            stream += [*ids, end]
        cost = -float(self._judge.log_probs([end, *self._turned(stream[:-1]), end]).double().sum())
        # The end of a document counts as a word and as a character: it had to be foreseen as well.
        words = sum(len(text.split()) + 1 for text in texts)
        characters = sum(len(text) + 1 for text in texts)
        scores = {
            "perplexity": _exp(cost / len(stream)),
            "word_perplexity": _exp(cost / words),
            "bits_per_character": cost / characters / math.log(2),
        }
        counts = f"tokens:{len(stream)}|words:{words}|characters:{characters}"
        signature = f"perplexity|{counts}|context:{self._judge.seen}|ends:counted"
        return Evaluation(scores, signature, len(texts))

    @property
    def _judge(self) -> Judge:
        spec = self.spec
        # Where state is carried no window is too long.
        window = spec.window if spec.carries else min(spec.window, self.model.longest or spec.window)
        return Judge(self.model, self.tokenizer.pad, self.device, window, spec.context, spec.carries)

    # Looking

    def written(self, source: str, target: str | Candidate | None = None) -> Written:
        prompt = self._prompt(source, 1, truncate=True)
        if target is None:
            target = self.answer(Asked([source], truncate=True))[0].text
        if isinstance(target, Candidate):
            more = target.tokens
        else:
            more = self._turned(self.tokenizer.encode_more(target)) if target else []
        ids = [*prompt, *more][: self.model.longest]
        pieces = self.tokenizer.pieces(ids)
        if (
            len(ids) == 1 and ids[0] != self.tokenizer.end
        ):  # a single token is foreseen from the end before it
            ids = [self.tokenizer.end, *ids]
            return Written(lambda: self.model.start(1), [], ids, pieces)
        first = None if ids[0] == self.tokenizer.end else pieces[0]
        ended = isinstance(target, Candidate) and target.pieces[-1:] == [END]
        if ended and len(ids) < (self.model.longest or len(ids) + 1):
            ids = [*ids, self.tokenizer.end]
        return Written(lambda: self.model.start(1), [], ids, pieces[1:], first)

    def reading(self, text: str) -> Written:
        return self.written(text, "")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.pieces(ids)

    def _after(self, prompt: Sequence[int], ids: Sequence[int]) -> str:
        """What the tokens add to the prompt, the space between them included."""
        if self.spec.backwards:
            return self._decode([*prompt, *ids]).removesuffix(self._decode(prompt))
        return self._decode([*prompt, *ids]).removeprefix(self._decode(prompt))

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(self._turned(list(ids)))

    def _turned(self, ids: list[int]) -> list[int]:
        return ids[::-1] if self.spec.backwards else ids


class _Listener:
    """A single one, in another thread."""

    listens = True

    def __init__(self, heard: "queue.Queue[str | BaseException | None]") -> None:
        self.heard, self.said, self.gone = heard, 0, False

    def hear(self, place: int, piece: str) -> None:
        self.said += len(piece)
        self.heard.put(piece)

    def left(self, place: int) -> bool:
        return self.gone


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
