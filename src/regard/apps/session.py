"""A trained run, loaded and ready to be used: ``regard.load("runs/dates")("3 mai 1979")``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.apps.devices import choose_device
from regard.apps.embedding import summing_up
from regard.apps.shortlists import read_shortlist
from regard.core.errors import RunError, UsageError
from regard.data.lexicon import Lexicon
from regard.engines.choice import Candidate, Listed, Wanted, choose
from regard.engines.layout import Precision
from regard.inspection.trace import Trace, trace_writing
from regard.models.mixture import Mixture
from regard.parts.pooling import SummingUpSpec
from regard.recipes.system import SystemSpec
from regard.search.search import SearchSpec
from regard.tasks.answers import Answer, Detail, Scored
from regard.tasks.engine import NO_ENGINE, Engines
from regard.tasks.task import NO_WISHES, WINDOW, Evaluation, Means, Task, Wishes, windows
from regard.tasks.vectors import Embedder, Reads, WordVector
from regard.training.run_folder import RunFolder

_NOT_ONE = "its weights are not those of one run folder"


class Run:
    """A model with its vocabularies, its task and its search. Nothing of a request is kept between calls."""

    def __init__(
        self,
        path: Path,
        spec: SystemSpec,
        model: nn.Module,
        lexicon: Lexicon,
        device: torch.device,
        seal: str | None = None,
        engine: Wanted = "auto",
        precision: Precision = "float32",
        listed: Listed | None = None,
    ) -> None:
        self.path, self.spec, self.model, self.device = path, spec, model, device
        self.lexicon, self.seal = lexicon, seal
        self.wanted_engine, self.precision, self.listed = engine, precision, listed
        self._last_task: tuple[SearchSpec | None, Task | None] = (None, None)

    @cached_property
    def engine(self) -> Engines:
        """Who answers: the fastest that can do the same, converted the first time it is needed."""
        if self.seal is None:
            if self.wanted_engine not in ("auto", "torch"):
                raise UsageError(f"--engine {self.wanted_engine}: {_NOT_ONE}")
            return Engines(reason=_NOT_ONE)
        weights = self.model.state_dict()
        run = Candidate(
            self.path, self.seal, self.spec.model, self.lexicon, weights, self.device, self.listed
        )
        return choose(self.wanted_engine, self.precision, run)

    def answered_by(
        self, search: SearchSpec | None = None, wishes: Wishes = NO_WISHES, keep: bool = False
    ) -> str:
        """In words: which engine does what is asked, and why not another."""
        return self._in_words(lambda: self.task(search).refusal(wishes, keep), search)

    def evaluated_by(self, search: SearchSpec | None = None) -> str:
        """The same of an evaluation."""
        return self._in_words(lambda: self.task(search).refusal_to_evaluate(), search)

    def embedded_by(self, summing: SummingUpSpec | None = None) -> str:
        """The same of vectors."""
        self.embedder()  # refuses what has none
        layer = (summing or self.spec.task.summing_up()).layer
        return self._in_words(lambda: self.engine.refusal_to_read(layer))

    def _in_words(self, refusal: Callable[[], str | None], search: SearchSpec | None = None) -> str:
        engine, reason = self.engine.engine, self.engine.reason
        if engine is not None:
            reason = refusal() or ""
            if reason and self.wanted_engine == engine.name:
                raise UsageError(f"--engine {engine.name}: cannot do what is asked: {reason}")
            if not reason:
                return engine.describe(search or self.spec.search)
        return f"torch ({reason})"

    @overload
    def __call__(self, texts: str) -> str: ...
    @overload
    def __call__(self, texts: list[str]) -> list[str]: ...
    def __call__(self, texts: str | list[str]) -> str | list[str]:
        """The best answer to one text, or to each of several."""
        if isinstance(texts, str):
            return self([texts])[0]
        return [answer.text for answer in self.stream(texts, detail="text")]

    def task(self, search: SearchSpec | None = None) -> Task:
        search = search or self.spec.search
        known, task = self._last_task
        if task is None or known is not search:  # who asks line by line asks the same way again
            task = self._task(search, self.engine)
            self._last_task = search, task
        return task

    def _task(self, search: SearchSpec | None = None, engines: Engines = NO_ENGINE) -> Task:
        search = search or self.spec.search
        means = Means(self.model, self.lexicon, self.spec.data, search, self.device, engines)
        return self.spec.task.build(means)

    def answers(
        self,
        texts: Iterable[str],
        search: SearchSpec | None = None,
        wishes: Wishes = NO_WISHES,
        truncate: bool = False,
        keep: bool = False,
    ) -> list[Answer]:
        return list(self.stream(texts, search, wishes, truncate, keep))

    def stream(
        self,
        texts: Iterable[str],
        search: SearchSpec | None = None,
        wishes: Wishes = NO_WISHES,
        truncate: bool = False,
        keep: bool = False,
        window: int = WINDOW,
        detail: Detail = "tokens",
    ) -> Iterator[Answer]:
        """Answers in order, in memory that does not grow with the input.

        ``detail`` is what must be known of them: every token's probability (tokens), that of the whole
        (scores) or just what they say (text). The less, the faster.
        """
        return self.task(search).stream(texts, wishes, truncate, keep, window, detail)

    def pieces(
        self, text: str, search: SearchSpec | None = None, wishes: Wishes = NO_WISHES
    ) -> Iterator[str]:
        """The answer to one text as it is written: ``for piece in run.pieces("Once upon"): print(piece)``."""
        return self.task(search).pieces_of(text, wishes)

    def score(self, records: Iterable[tuple[str, ...]], truncate: bool = False) -> Iterator[Scored]:
        """How probable given texts are, token by token."""
        task, line = self._task(), 1
        for some in windows(records, WINDOW):
            yield from task.score(some, line, truncate)
            line += len(some)

    def evaluate(
        self,
        records: Sequence[tuple[str, ...]],
        metric: str | None = None,
        search: SearchSpec | None = None,
    ) -> Evaluation:
        """How good it is on given examples, by the run's metric or another."""
        return self.task(search).evaluate(records, metric or self.spec.evaluation.metric)

    def embed(
        self,
        texts: str | Sequence[str],
        pooling: str | None = None,
        normalise: bool | None = None,
        layer: int | None = None,
        truncate: bool = False,
    ) -> Float[np.ndarray, "*texts width"]:
        """The vector of one text, or of each of several: one row each, 32-bit.

        ``pooling`` is mean, first, last, max, mix (of all layers) or gist; ``layer`` 0 is what goes into the
        first layer, -1 the last one. What is not given is as usual for this run.
        """
        summing = summing_up(self.spec.task.summing_up(), pooling, normalise, layer)
        given = [texts] if isinstance(texts, str) else list(texts)
        found = [vector for _, vector in self.embedder().stream(given, summing, truncate)]
        if isinstance(texts, str):
            return found[0]
        return np.stack(found) if found else np.zeros((0, 0), np.float32)

    def embed_words(
        self, texts: str | Sequence[str], layer: int | None = None, truncate: bool = False
    ) -> list[WordVector] | list[list[WordVector]]:
        """Every word of one text, or of each of several, with its vector in this company."""
        summing = summing_up(self.spec.task.summing_up(), None, False, layer)
        found = self.embedder().words(
            [texts] if isinstance(texts, str) else list(texts), summing, 1, truncate
        )
        return found[0] if isinstance(texts, str) else found

    def embedder(self) -> Embedder:
        if not isinstance(self.model, Reads):
            raise UsageError(
                f"{self.path}: a model of kind {self.spec.model.kind()!r} has no vectors of texts"
            )
        tokenizer = next(iter(self.lexicon.values()))  # that of what is read comes first
        return Embedder(self.model, self.task(), tokenizer, self.device, self.engine.reading)

    def trace(self, source: str, target: str | None = None) -> Trace:
        """What the model looked at while it wrote ``target`` (its own answer when none is given)."""
        return trace_writing(self.model, self._task().written(source, target))


def load(
    path: str | Path,
    device: str | None = None,
    engine: Wanted = "auto",
    precision: Precision = "float32",
    shortlist: bool = False,
) -> Run:
    """Open a run folder. A damaged one is refused with the name of the file at fault.

    ``engine`` may answer instead of our own steps; ``precision`` int8, or auto for whatever is faster on this
    machine, changes answers a little. With ``shortlist`` CTranslate2 writes only words that training pairs
    put beside those of the source, or that are frequent, which is faster and changes answers a little, too.
    """
    folder = RunFolder.open(Path(path))
    spec = SystemSpec.from_dict(folder.record.spec, where=str(folder.path / "regard.json"))
    lexicon = read_lexicon(folder, spec)
    listed = read_shortlist(folder, lexicon) if shortlist else None
    if not folder.has_weights():
        raise RunError(f"{path}: training has not yet saved any weights here")
    chosen = choose_device(device)
    model = spec.model.build(lexicon.sizes)
    seal = folder.seal()
    folder.load_into(model)
    return Run(folder.path, spec, model.to(chosen).eval(), lexicon, chosen, seal, engine, precision, listed)


def load_together(
    paths: Sequence[str | Path],
    weights: Sequence[float] | None = None,
    device: str | None = None,
    engine: Wanted = "auto",
) -> Run:
    """Several runs with one vocabulary asked as one: an ensemble, or an interpolation with ``weights``."""
    return together([load(path, device) for path in paths], weights, engine)


def together(runs: Sequence[Run], weights: Sequence[float] | None = None, engine: Wanted = "auto") -> Run:
    """The same of runs that have been loaded."""
    first, *others = runs
    for other in others:
        refuse_other_vocabulary(first, other)
    spec = first.spec.model_copy(
        update={"task": first.spec.task.together([other.spec.task for other in others])}
    )
    mixture = Mixture([run.model for run in runs], weights).to(first.device).eval()
    return Run(first.path, spec, mixture, first.lexicon, first.device, engine=engine)


def refuse_other_vocabulary(one: Run, other: Run) -> None:
    """Token 17 must be the same word everywhere."""
    if (field := one.lexicon.differs_from(other.lexicon)) is not None:
        raise RunError(
            f"{one.path} and {other.path} have different vocabularies for {field!r}: "
            f"train the second with --vocabulary {one.path}"
        )
    if one.lexicon.labels != other.lexicon.labels:
        raise RunError(f"{one.path} and {other.path} tell different classes apart")


def read_lexicon(folder: RunFolder, spec: SystemSpec) -> Lexicon:
    """Every vocabulary of a run."""
    return Lexicon.read(spec.data.fields, folder.record.files, folder.read_file, folder.path)
