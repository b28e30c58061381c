"""One look into a model: a text, its answer, the search for it, the trace, what an intervention changed.

A look is what the inspector shows, what ``regard look --json`` prints and what a self-contained page carries;
docs/trace.md tells of every field.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import nn

from regard.core.errors import UsageError
from regard.core.tape import Tape
from regard.inspection.alignment import Matrix, alignment, rollout, source_rollout, word_alignment
from regard.inspection.head_deeds import deeds
from regard.inspection.interventions import Intervention, edits_of
from regard.inspection.packing import Encoding, pack
from regard.inspection.trace import Trace, trace_writing
from regard.search.kept import KeptSentence
from regard.tasks.answers import END, Answer, Candidate
from regard.tasks.task import Asked, Task, Wishes

FORMAT = "regard.look"
VERSION = 1
MOST_TOKENS = 256
"""Read or written; a page with more would be slow, and nobody could read it."""


@dataclass(frozen=True)
class Question:
    """What somebody wants to see."""

    text: str
    target: str | None = None
    """Look at this output instead of the model's own."""
    begin: tuple[int, ...] = ()
    """Tokens that its own output must begin with."""
    interventions: tuple[Intervention, ...] = ()


@dataclass(frozen=True, eq=False)
class Look:
    question: Question
    answer: Answer
    trace: Trace
    pieces: dict[int, str]
    """Of every token of the search."""
    unknown: str = ""
    """How a token that is not in the vocabulary is shown."""
    before: "Look | None" = None
    """The same without interventions."""
    kept: tuple[float, ...] = field(default=())
    """With interventions: log-probabilities of what was written before them."""

    def to_dict(self, encoding: Encoding = "uint8") -> dict[str, Any]:
        trace = self.trace.to_dict(encoding)
        for seen, said in zip(self.trace.attentions, trace["attentions"], strict=True):
            said["deeds"] = [one._asdict() for one in deeds(seen)]
        question = self.question
        return {
            "format": FORMAT,
            "version": VERSION,
            "text": question.text,
            "target": question.target,
            "begin": list(question.begin),
            "interventions": [one.to_dict() for one in question.interventions],
            "answer": self.answer.text,
            "candidates": [candidate.to_dict() for candidate in self.answer.candidates],
            "search": _search(self.answer.search, self.pieces),
            "views": _views(self.trace, encoding),
            "words": _words(self.trace),
            "notes": self.notes(),
            "before": self.before and self.before._said_before(self.kept),
            "trace": trace,
        }

    def notes(self) -> list[str]:
        """What a person should know before believing what they see."""
        pieces = [*self.trace.source, *self.trace.target]
        strange = pieces.count(self.unknown) if self.unknown else 0
        said = []
        if strange:
            tokens = "1 token is" if strange == 1 else f"{strange} tokens are"
            said.append(f"{tokens} not in this model's vocabulary: it reads {self.unknown} there")
        if self.trace.target and not self.trace.ended and self.answer.search is not None:
            said.append("the output was cut off at its greatest length")
        return said

    def _said_before(self, kept: Sequence[float]) -> dict[str, Any]:
        return {
            "answer": self.answer.text,
            "pieces": list(self.trace.predictions),
            "log_probs": list(self.trace.log_probs),
            "now": list(kept),
            "candidates": [candidate.to_dict() for candidate in self.answer.candidates],
        }


def look(model: nn.Module, task: Task, question: Question, steps: bool = False, unknown: str = "") -> Look:
    """Answer, and record how. ``steps``: also what attention weights were made of."""
    before = None
    if question.interventions:
        before = look(model, task, Question(question.text, question.target, question.begin))
    edits = edits_of(question.interventions)
    with Tape(model, edits, keeps=False) if edits else nullcontext():
        answer = _answered(task, question)
        target = question.target or (answer.candidates[0] if answer.candidates else None)
        written = task.written(question.text, target)
    for count, what in ((len(written.read), "to be read"), (len(written.pieces), "written")):
        if count > MOST_TOKENS:
            raise UsageError(f"{count} tokens {what}: the inspector shows up to {MOST_TOKENS}")
    trace = trace_writing(model, written, edits_of(question.interventions), steps, task.pieces)
    kept: tuple[float, ...] = ()
    if before is not None:
        kept = _kept(model, task, question, before)
    return Look(question, answer, trace, _pieces(task, answer), unknown, before, kept)


def _answered(task: Task, question: Question) -> Answer:
    if question.text.strip() == "" and not task.begins:
        raise UsageError("there is nothing to read: write a text")
    if not task.asks(question.text):
        return Answer(question.text)
    (answer,) = task.answer(Asked([question.text], Wishes(begin=question.begin), keep=True))
    return answer


def _kept(model: nn.Module, task: Task, question: Question, before: Look) -> tuple[float, ...]:
    """How probable the answer without interventions is with them."""
    found: str | Candidate | None = question.target or next(iter(before.answer.candidates), None)
    if found is None:
        return ()
    written = task.written(question.text, found)
    if written.ids:
        return trace_writing(model, written, edits_of(question.interventions)).log_probs
    with Tape(model, edits_of(question.interventions), keeps=False):
        return _at_once(task, question, before)


def _at_once(task: Task, question: Question, before: Look) -> tuple[float, ...]:
    (now,) = task.answer(Asked([question.text]))
    wanted = before.answer.text
    return next((tuple(one.token_log_probs) for one in now.candidates if one.text == wanted), ())


def _pieces(task: Task, answer: Answer) -> dict[int, str]:
    if answer.search is None:
        return {}
    tokens = {one.token for one in answer.search.expansions}
    tokens |= {token for words in answer.search.words.values() for token, _ in words}
    ordered = sorted(tokens)
    named = dict(zip(ordered, task.pieces(ordered), strict=True))
    ends = {one.token for one in answer.search.expansions if one.status == "finished"}
    return named | dict.fromkeys(ends, END)


def _search(kept: KeptSentence | None, pieces: dict[int, str]) -> dict[str, Any] | None:
    if kept is None:
        return None
    best = kept.best
    return {
        **kept.to_dict(),
        "pieces": {str(token): piece for token, piece in pieces.items()},
        "best": None if best is None else best.node,
    }


def _views(trace: Trace, encoding: Encoding) -> dict[str, Any]:
    """Many attentions as one matrix, where the model has what they sum up."""
    read, wrote = trace.source, trace.predictions
    before = next((seen.columns for seen in trace.attentions if seen.part == "decoder"), ())
    found = {
        "alignment": (alignment(trace), wrote, read),
        "source_rollout": (source_rollout(trace), wrote, read),
        "encoder_rollout": (rollout(trace, "encoder"), read, read),
        "decoder_rollout": (rollout(trace, "decoder"), wrote, before),
    }
    return {
        name: _view(matrix, rows, columns, encoding)
        for name, (matrix, rows, columns) in found.items()
        if matrix is not None and matrix.shape == (len(rows), len(columns))
    }


def _words(trace: Trace) -> dict[str, Any] | None:
    """The alignment, word by word."""
    matrix = alignment(trace)
    return None if matrix is None else word_alignment(matrix, trace.predictions, trace.source)._asdict()


def _view(matrix: Matrix, rows: Sequence[str], columns: Sequence[str], encoding: Encoding) -> dict[str, Any]:
    weights = np.ascontiguousarray(matrix[None], dtype=np.float32)
    return {"rows": list(rows), "columns": list(columns), "weights": pack(weights, encoding)}
