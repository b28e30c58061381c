"""From a recipe and a file of examples to a run folder."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from regard.apps.devices import choose_device
from regard.apps.reporting import write_report
from regard.apps.session import Run, read_tokenizers, tokenizer_files
from regard.core.errors import UsageError
from regard.data.corpora import EMBEDDED, embedded
from regard.data.origins import Given
from regard.data.pairs import Pairs, PairsReport
from regard.data.places import find_splits
from regard.data.prefetch import prefetch
from regard.data.tokenizers import Tokenizer
from regard.recipes.catalogue import recipe
from regard.recipes.system import SystemSpec
from regard.search.greedy import GreedySpec
from regard.training.evaluation import Validation
from regard.training.events import Watcher
from regard.training.loop import TrainingResult
from regard.training.loop import train as run_loop
from regard.training.run_folder import RunFolder, load_weights
from regard.training.stepping import set_random
from regard.training.weights import Transfer


class Trained(NamedTuple):
    run: Run
    result: TrainingResult


class Listener:
    """Told what happens before training begins."""

    def on_data(self, report: PairsReport) -> None: ...
    def on_model(self, parameters: int, transfer: Transfer | None) -> None: ...


def system_named(name: str | Path | SystemSpec) -> SystemSpec:
    """A recipe by name, a spec in a YAML file, or a spec as it is."""
    if isinstance(name, SystemSpec):
        return name
    path = Path(name)
    if path.suffix in (".yaml", ".yml", ".json"):
        if not path.is_file():
            raise UsageError(f"{path}: there is no such file")
        return SystemSpec.from_yaml(path.read_text(encoding="utf-8"), where=str(path))
    return recipe(str(name))


def train(
    system: str | Path | SystemSpec,
    data: str | Path | Iterable[tuple[str, str]],
    out: str | Path,
    *,
    valid: str | Path | Iterable[tuple[str, str]] | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    seed: int = 1,
    settings: Sequence[str] = (),
    start_from: str | Path | None = None,
    device: str | None = None,
    watchers: Sequence[Watcher] = (),
    listener: Listener | None = None,
) -> Trained:
    """Train, or go on with, the run in ``out``. ``settings`` are ``key=value`` overrides of the spec."""
    spec = with_budget(system_named(system), steps, minutes).override(settings)
    refuse_impossible(spec)
    chosen, folder_path = choose_device(device), Path(out)
    known = known_tokenizers(folder_path, start_from)
    given, given_valid = find_data(data, valid)
    pairs = Pairs.prepare(spec.data, given, given_valid, seed, known, cache_folder())
    listener = listener or Listener()
    listener.on_data(pairs.report)
    folder = RunFolder.create(
        folder_path,
        spec,
        seed,
        pairs.fingerprint,
        tokenizer_files(pairs.source_tokenizer, pairs.target_tokenizer),
        may_differ=spec.training.may_differ(),
    )
    set_random(torch.device("cpu"), seed, 0)
    model = spec.model.build({"source": pairs.source_tokenizer.size, "target": pairs.target_tokenizer.size})
    transfer = None if start_from is None else load_weights(model, Path(start_from))
    listener.on_model(sum(p.numel() for p in model.parameters()), transfer)
    run = Run(folder_path, spec, model, (pairs.source_tokenizer, pairs.target_tokenizer), chosen)
    validation = validation_of(run, pairs)
    result = run_loop(
        model,
        spec.objective.build(),
        pairs,
        validation,
        spec.training,
        folder,
        seed,
        watchers,
        chosen,
        prefetch=prefetch,
    )
    model.eval()
    write_report(run, result, pairs.report, validation.texts, folder)
    return Trained(run, result)


def refuse_impossible(spec: SystemSpec) -> None:
    """Sizes that do not fit together are told at once, before any data is read; this allocates nothing."""
    with torch.device("meta"):
        spec.model.build({"source": 8, "target": 8})


def cache_folder() -> Path:
    """Where corpora too large for memory are kept between runs."""
    chosen = os.environ.get("REGARD_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "regard"


def with_budget(spec: SystemSpec, steps: int | None, minutes: float | None) -> SystemSpec:
    """``--steps`` and ``--minutes`` are short for two fields of the spec; who gives one means only that."""
    if steps is None and minutes is None:
        return spec
    asked = {"training.steps": steps, "training.minutes": minutes}
    return spec.override([f"{key}={'null' if value is None else value}" for key, value in asked.items()])


def known_tokenizers(out: Path, start_from: str | Path | None) -> tuple[Tokenizer, Tokenizer] | None:
    """Those of the run to go on with, or of the one to start from: their vocabulary goes with the weights."""
    if RunFolder.holds_run(out):
        return read_tokenizers(RunFolder.open(out))
    return None if start_from is None else read_tokenizers(RunFolder.open(Path(start_from)))


def find_data(
    data: str | Path | Iterable[tuple[str, str]], valid: str | Path | Iterable[tuple[str, str]] | None
) -> tuple[Given, Given | None]:
    """Embedded corpora by name, folders with their splits, files, or pairs from Python."""
    if isinstance(data, str) and data in EMBEDDED:
        corpus = embedded(data)
        return corpus.train, corpus.valid if valid is None else valid
    if not isinstance(data, str | Path):
        return data, valid
    splits = find_splits(data)
    return splits.train, splits.valid if valid is None else valid


def validation_of(run: Run, pairs: Pairs) -> Validation:
    greedy = GreedySpec()
    return Validation(
        objective=run.spec.objective.for_validation().build(),
        batches=pairs.validation(),
        texts=list(zip(*pairs.validation_texts(), strict=True))[: run.spec.evaluation.examples],
        answer=lambda texts: [answer.text for answer in run.answers(texts, greedy, truncate=True)],
        metric=run.spec.evaluation.metric,
        device=run.device,
    )


__all__ = ["Listener", "Trained", "find_data", "system_named", "train"]
