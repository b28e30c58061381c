"""From a recipe and a file of examples to a run folder."""

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.apps.devices import choose_device
from regard.apps.reporting import write_report
from regard.apps.samples import COUNT, Samples
from regard.apps.session import Run, read_lexicon
from regard.apps.shortlists import Entries, keep_shortlist, refuse_without_pairs
from regard.apps.teachers import asked_teachers, teaching_of
from regard.apps.vectors import Coverage, asked_vectors, introduce, start_tables, with_room
from regard.core.errors import UsageError
from regard.data.data import DataReport, PreparedData
from regard.data.lexicon import Lexicon
from regard.data.prefetch import prefetch
from regard.data.shortlists import BEST, COMMON
from regard.objectives.teaching import Teaching
from regard.recipes.catalogue import RECIPES, recipe
from regard.recipes.system import SystemSpec
from regard.search.greedy import GreedySpec
from regard.training.evaluation import Validation
from regard.training.events import Watcher
from regard.training.learning import Lesson
from regard.training.result import TrainingResult
from regard.training.run_folder import RunFolder, load_weights
from regard.training.stepping import set_random
from regard.training.weights import Transfer


class Trained(NamedTuple):
    run: Run
    result: TrainingResult


class Listener:
    """Told what happens before training begins."""

    def on_data(self, report: DataReport) -> None: ...
    def on_model(self, parameters: int, transfer: Transfer | None) -> None: ...
    def on_teaching(self, runs: Sequence[str], teaching: Teaching) -> None: ...
    def on_vectors(self, coverage: Coverage) -> None: ...


def system_named(name: str | Path | SystemSpec, start: SystemSpec | None = None) -> SystemSpec:
    """A recipe by name, made for what it is to ``start`` from; the spec of a run or a file; or a spec."""
    if isinstance(name, SystemSpec):
        return name
    path = Path(name)
    if RunFolder.holds_run(path):
        return spec_of_run(path)
    if path.suffix in (".yaml", ".yml", ".json"):
        if not path.is_file():
            raise UsageError(f"{path}: there is no such file")
        return SystemSpec.from_yaml(path.read_text(encoding="utf-8"), where=str(path))
    return recipe(str(name), None if start is None else start.model)


def spec_of_run(path: Path) -> SystemSpec:
    folder = RunFolder.open(path)
    return SystemSpec.from_dict(folder.record.spec, where=str(folder.path / "regard.json"))


def train(
    system: str | Path | SystemSpec,
    data: str | Path | Iterable[Any],
    out: str | Path,
    *,
    valid: str | Path | Iterable[Any] | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    seed: int = 1,
    settings: Sequence[str] = (),
    start_from: str | Path | None = None,
    vocabulary: str | Path | None = None,
    vectors: Sequence[str] = (),
    taught_by: Sequence[str | Path] = (),
    device: str | None = None,
    watchers: Sequence[Watcher] = (),
    listener: Listener | None = None,
) -> Trained:
    """Train, or go on with, the run in ``out``. ``settings`` are ``key=value`` overrides of the spec.

    ``start_from`` is a run whose weights and vocabulary are taken over, ``vocabulary`` one of which only the
    vocabulary is. ``vectors`` are files of word vectors, or runs that have some, that tables of words start
    from: ``FILE``, or ``target=FILE`` for a field by its name. What ``taught_by``, other runs, find likely is
    learned beside what the data say; their vocabulary is taken over, too.
    """
    start = None if start_from is None else spec_of_run(Path(start_from))
    named = system_named(system, start)
    asked = [*asked_vectors(vectors, named), *asked_teachers([str(path) for path in taught_by])]
    spec = with_budget(named, steps, minutes).override([*asked, *settings])
    if spec.vectors and start is not None:
        raise UsageError("--vectors and --from both say what words start from: give one of them")
    spec = with_room(spec, settings, free=str(system) in RECIPES)
    refuse_impossible(spec)
    refuse_nothing_to_keep(spec, start, Path(out))
    chosen, folder_path = choose_device(device), Path(out)
    teachers = spec.teaching.runs
    known = known_lexicon(folder_path, start_from or vocabulary or (teachers[0] if teachers else None), spec)
    refuse_other_marks(spec, known)
    teaching = None if known is None else teaching_of(spec, known, chosen)
    objective = spec.objective.build()
    if teaching is not None:
        objective = objective.taught_by(teaching)
    given, given_valid = spec.data.find(data, valid)
    prepared = spec.data.prepare(given, given_valid, seed, known, cache_folder())
    listener = listener or Listener()
    listener.on_data(prepared.report)
    if teaching is not None:
        listener.on_teaching(teachers, teaching)
    folder = RunFolder.create(
        folder_path,
        spec,
        seed,
        prepared.fingerprint,
        prepared.lexicon.files(),
        may_differ=spec.training.may_differ(),
    )
    if not folder.has_shortlist():
        keep_shortlist(folder, prepared)
    set_random(torch.device("cpu"), seed, 0)
    model = spec.model.build(prepared.lexicon.sizes)
    transfer = None
    if start_from is not None and start is not None:
        transfer = load_weights(model, Path(start_from), (start.model.reads_as, spec.model.reads_as))
    listener.on_model(sum(p.numel() for p in model.parameters()), transfer)
    introduce(model, prepared)
    for coverage in start_tables(model, spec, prepared):
        listener.on_vectors(coverage)
    run = Run(folder_path, spec, model, prepared.lexicon, chosen)
    validation = validation_of(run, prepared)
    watchers = [*watchers, Samples(run, prepared.examples(COUNT))]
    with closing(prepared):
        result = spec.training.learn(
            Lesson(model, objective, prepared, validation, folder, seed, watchers, chosen, prefetch)
        )
    model.eval()
    write_report(run, result, prepared, folder)
    return Trained(Run(folder_path, spec, model, prepared.lexicon, chosen, folder.seal()), result)


def make_shortlist(
    run: str | Path, data: str | Path | Iterable[Any], best: int = BEST, common: int = COMMON
) -> Entries:
    """A shortlist for a run that has none, or another one: ``best`` target tokens for each source token, and
    the ``common`` most frequent ones for all."""
    folder, spec, lexicon = RunFolder.open(Path(run)), spec_of_run(Path(run)), lexicon_of(Path(run))
    refuse_without_pairs(folder, lexicon)
    given, valid = spec.data.find(data, None)
    with closing(spec.data.prepare(given, valid, folder.record.seed, lexicon, cache_folder())) as prepared:
        found = keep_shortlist(folder, prepared, best, common)
    assert found is not None, "pairs have one"
    return found


def refuse_impossible(spec: SystemSpec) -> None:
    """Sizes that do not fit together are told at once, before any data is read; this allocates nothing."""
    spec.training.refuse_impossible()
    with torch.device("meta"):
        spec.model.build(dict.fromkeys((*spec.data.fields, *spec.data.labels), 8))


def refuse_nothing_to_keep(spec: SystemSpec, start: SystemSpec | None, out: Path) -> None:
    """Freezing keeps what was learned before, slower layers keep most; from nothing there is nothing."""
    paths = spec.paths()
    freeze = str(paths.get("training.thawing.freeze", "none"))
    if start is not None or RunFolder.holds_run(out) or (freeze == "embeddings" and spec.vectors):
        return
    if freeze != "none":
        hint = ", or words that were with --vectors" if freeze == "embeddings" else ""
        raise UsageError(f"--freeze {freeze} keeps what was learned before: name a run with --from{hint}")
    if paths.get("training.thawing.layer_decay", 1.0) != 1.0:
        raise UsageError("--layer-decay spares what was learned before: name a run with --from")


def refuse_other_marks(spec: SystemSpec, known: Lexicon | None) -> None:
    """A model that knows special tokens by number can read only vocabularies that number them so."""
    for tokenizer in () if known is None else known.values():
        if spec.model.marks not in (None, tuple(tokenizer.marks[:4])):
            raise UsageError(
                f"the model {spec.model.kind()!r} takes {spec.model.marks} for padding, unknown, begin "
                f"and end, but in this vocabulary they are {tuple(tokenizer.marks[:4])}: let it learn its own"
            )


def cache_folder() -> Path:
    """Where corpora too large for memory are kept between runs."""
    chosen = os.environ.get("REGARD_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "regard"


def with_budget(spec: SystemSpec, steps: int | None, minutes: float | None) -> SystemSpec:
    """``--steps`` and ``--minutes`` are short for two fields of the spec; who gives one means only that."""
    if steps is None and minutes is None:
        return spec
    if "training.steps" not in spec.paths():
        raise UsageError(
            f"--steps and --minutes: training of kind {spec.training.kind()!r} takes what it takes"
        )
    asked = {"training.steps": steps, "training.minutes": minutes, "training.epochs": None}
    return spec.override([f"{key}={'null' if value is None else value}" for key, value in asked.items()])


def known_lexicon(out: Path, other: str | Path | None, spec: SystemSpec) -> Lexicon | None:
    """That of the run to go on with, or the tokenizers of one whose weights or vocabulary are taken over."""
    if RunFolder.holds_run(out):
        return lexicon_of(out)
    return None if other is None else lexicon_of(Path(other)).for_fields(spec.data.fields)


def lexicon_of(path: Path) -> Lexicon:
    return read_lexicon(RunFolder.open(path), spec_of_run(path))


def validation_of(run: Run, prepared: PreparedData) -> Validation:
    """The loss, and how good quick answers to some examples are."""
    spec = run.spec.evaluation
    examples = prepared.examples(spec.examples) if spec.metric is not None else []

    def judged() -> dict[str, float]:
        return run.evaluate(examples, search=GreedySpec()).scores if examples else {}

    return Validation(
        objective=run.spec.objective.for_validation().build(),
        batches=prepared.validation(),
        judged=judged,
        device=run.device,
    )


__all__ = ["Listener", "Trained", "make_shortlist", "system_named", "train"]
