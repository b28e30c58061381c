"""What the inspector shows of a run: looks, steps, words, positions, cuts, probes, and how it was trained."""

import math
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from regard.apps.samples import read_lines, read_samples
from regard.apps.session import Run, load
from regard.core.errors import RegardError, RunError, UsageError, nearest
from regard.inspection.charts import Chart
from regard.inspection.importance import importance
from regard.inspection.inspector import inspector_page
from regard.inspection.interventions import Intervention
from regard.inspection.look import Question, look
from regard.inspection.packing import Encoding
from regard.inspection.places_as_pictures import positions_of
from regard.inspection.probe import Template, probe
from regard.inspection.report import learning_charts
from regard.inspection.words_in_space import contexts
from regard.recipes.system import SystemSpec
from regard.tasks.task import Task, Written
from regard.training.run_folder import RunFolder

LONGEST_TEXT = 20_000
"""Characters; more are refused before a tokenizer sees them."""
ANSWERS = 8
_LONGEST_EXAMPLE = 200
_ENOUGH_STEPS = 4_000_000
"""Numbers of queries, keys, values and scores that a page carries; beyond, it shows weights alone."""


class Inspected:
    """One run, loaded when it is first asked for. One question at a time."""

    def __init__(self, path: Path, device: str | None = None) -> None:
        self.path, self.device = path, device
        self._run: Run | None = None
        self._lock, self._loading = Lock(), Lock()

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def run(self) -> Run:
        with self._loading:
            if self._run is None:
                self._run = load(self.path, self.device, engine="torch")  # only there can it be watched
            return self._run

    def task(self) -> Task:
        """As the run has it; where answers are read off at once, several of them."""
        spec = self.run.spec
        if spec.search.kind() == "ranking":
            spec = spec.override([f"search.best={ANSWERS}"])
        return self.run.task(spec.search)

    @property
    def unknown(self) -> str:
        """How a token that is not in the vocabulary is shown."""
        tokenizer = next(iter(self.run.lexicon.values()))
        return tokenizer.pieces([tokenizer.unknown])[0]

    def about(self) -> dict[str, Any]:
        """What a page must know before it asks; a run that cannot be loaded says why."""
        try:
            spec = self.run.spec
        except RegardError as error:
            return {"name": self.name, "error": str(error)}
        return {
            "name": self.name,
            "task": spec.task.kind(),
            "parameters": sum(one.numel() for one in self.run.model.parameters()),
            "pairs": "target" in self.run.lexicon,
            "begins": self.task().begins,
            "gap": "___" if spec.task.kind() == "filling" else "",
            "examples": self.examples(),
        }

    def look(self, question: Question, steps: bool = False, encoding: Encoding = "uint8") -> dict[str, Any]:
        refuse_long(question.text, question.target or "")
        with self._lock:
            return look(self.run.model, self.task(), question, steps, self.unknown).to_dict(encoding)

    def steps(self, question: Question, attention: str) -> dict[str, Any]:
        """One attention with all that its weights were made of."""
        found = {seen["name"]: seen for seen in self.look(question, True, "float32")["trace"]["attentions"]}
        if attention not in found:
            raise UsageError(f"there is no attention {attention!r}{nearest(attention, found)}")
        one: dict[str, Any] = found[attention]
        return one

    def importance(self, question: Question) -> list[dict[str, Any]]:
        refuse_long(question.text, question.target or "")
        with self._lock:
            model, task = self.run.model, self.task()
            return importance(model, task, look(model, task, question))

    def words(self, sentences: Sequence[str]) -> dict[str, Any]:
        refuse_long(*sentences)
        tokenizer = next(iter(self.run.lexicon.values()))
        with self._lock:
            found = contexts(self.run.model, self.task(), sentences)
        return found.to_dict(tokenizer.pieces(range(tokenizer.size)))

    def positions(self) -> list[dict[str, Any]]:
        with self._lock:
            return positions_of(self.run.model, self._any_reading())

    def _any_reading(self) -> Written:
        """Of some text that this run can read."""
        *others, last = *self.examples(), "a b", "a\tb"
        for text in others:
            try:
                return self.task().reading(text)
            except RegardError:
                continue
        return self.task().reading(last)

    def cuts(self, text: str) -> dict[str, Any]:
        refuse_long(text)
        if not text.strip():
            raise UsageError("there is nothing to cut: write a word")
        tokenizer = next(iter(self.run.lexicon.values()))
        return {
            "unit": tokenizer.spec.unit,
            "pieces": tokenizer.pieces(tokenizer.encode(text)),
            "words": [
                [{"symbols": cut.symbols, "pair": cut.pair, "rank": cut.rank} for cut in cuts]
                for cuts in tokenizer.cuts(text)
            ],
        }

    def probe(self, template: str) -> dict[str, Any]:
        refuse_long(template)
        with self._lock:
            return probe(self.task(), Template(template))

    def facts(self) -> dict[str, Any]:
        """How it was trained: curves, samples, data, spec."""
        folder = RunFolder.open(self.path)
        record = folder.record
        events = read_lines(folder.log_path)
        spec = SystemSpec.from_dict(record.spec, where=str(self.path / "regard.json"))
        return {
            "name": self.name,
            "facts": {
                "task": spec.task.kind(),
                "seed": record.seed,
                "fingerprint of the data": record.fingerprint,
                **{f"{library} version": version for library, version in record.versions.items()},
                **_end(events),
            },
            "charts": [_chart(chart) for chart in learning_charts(events)],
            "samples": read_samples(self.path),
            "spec": spec.to_yaml(),
        }

    def examples(self) -> list[str]:
        """Texts to begin with: such as were answered while it learned."""
        texts = list(dict.fromkeys(str(sample.get("source", "")) for sample in read_samples(self.path)))
        return [text for text in texts if len(text) <= _LONGEST_EXAMPLE][:6]


def self_contained(inspected: Sequence[Inspected], questions: Sequence[Question], title: str) -> str:
    """The inspector as one file: everything it shows is in it, and what needs the model says so."""
    data = {
        "mode": "file",
        "runs": [one.about() for one in inspected],
        "kept": [_kept(one, questions) for one in inspected],
    }
    return inspector_page(title, data, served=False)


def _kept(one: Inspected, questions: Sequence[Question]) -> dict[str, Any]:
    looks = [one.look(question, steps=True) for question in questions]
    for seen in looks:
        _leave_out_steps(seen)
    return {
        "looks": looks,
        "importance": [one.importance(question) for question in questions],
        "words": _or_error(lambda: one.words([question.text for question in questions])),
        "positions": _or_error(one.positions),
        "cuts": [_or_error(lambda text=question.text: one.cuts(text)) for question in questions],
        "facts": one.facts(),
    }


def _leave_out_steps(seen: dict[str, Any]) -> None:
    """Where they would make the file too large to send."""
    attentions = seen["trace"]["attentions"]
    size = sum(math.prod(packed["shape"]) for one in attentions for packed in one.get("steps", {}).values())
    if size > _ENOUGH_STEPS:
        for one in attentions:
            one.pop("steps", None)


def _or_error(make: Any) -> Any:
    try:
        return make()
    except RegardError as error:
        return {"error": str(error)}


def refuse_long(*texts: str) -> None:
    size = sum(map(len, texts))
    if size > LONGEST_TEXT:
        raise UsageError(f"{size:,} characters: the inspector reads up to {LONGEST_TEXT:,}")


def question_of(
    text: str,
    target: str | None = None,
    begin: Sequence[int] = (),
    interventions: Sequence[dict[str, Any]] = (),
) -> Question:
    return Question(
        text, target or None, tuple(begin), tuple(Intervention.from_dict(one) for one in interventions)
    )


def refuse_missing(paths: Sequence[Path]) -> None:
    """Before a browser opens: a folder that is no run at all."""
    if not 1 <= len(paths) <= 2:
        raise UsageError(f"{len(paths)} runs: the inspector shows one, or two side by side")
    for path in paths:
        if not RunFolder.holds_run(path):
            raise RunError(f"{path}: not a run: it holds no regard.json")


def _end(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    ends = [event for event in events if event.get("event") == "end"]
    return {name: ends[-1].get(name) for name in ("best_step", "best", "reason")} if ends else {}


def _chart(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "from_zero": chart.from_zero,
        "may_be_log": chart.may_be_log,
        "curves": [
            {"name": curve.name, "points": [list(point) for point in curve.points], "dots": curve.dots}
            for curve in chart.curves
        ],
    }
