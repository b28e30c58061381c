"""A trained run, loaded and ready to be used: ``regard.load("runs/dates")("3 mai 1979")``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import torch
from torch import nn

from regard.apps.devices import choose_device
from regard.core.errors import RunError
from regard.core.sequences import Tokens
from regard.data.tokenizers import Tokenizer
from regard.inspection.trace import Trace, trace_pair
from regard.recipes.system import SystemSpec
from regard.search.search import SearchSpec
from regard.tasks.answers import Answer, Scored
from regard.tasks.transduction import NO_WISHES, Transducer, Transduction, Wishes
from regard.training.metrics import metric_named
from regard.training.run_folder import RunFolder

Item = TypeVar("Item")
WINDOW = 2048
"""Lines that are sorted by length and answered together."""


@dataclass(frozen=True)
class Evaluation:
    metric: str
    value: float
    signature: str
    examples: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Run:
    """A model with its tokenizers and its search. Nothing of a request is kept between calls."""

    def __init__(
        self,
        path: Path,
        spec: SystemSpec,
        model: nn.Module,
        tokenizers: tuple[Tokenizer, Tokenizer],
        device: torch.device,
    ) -> None:
        self.path, self.spec, self.model, self.device = path, spec, model, device
        self.source_tokenizer, self.target_tokenizer = tokenizers

    @overload
    def __call__(self, texts: str) -> str: ...
    @overload
    def __call__(self, texts: list[str]) -> list[str]: ...
    def __call__(self, texts: str | list[str]) -> str | list[str]:
        """The best answer to one text, or to each of several."""
        if isinstance(texts, str):
            return self.answers([texts])[0].text
        return [answer.text for answer in self.answers(texts)]

    def task(self, search: SearchSpec | None = None) -> Transduction:
        return Transduction(
            cast(Transducer, self.model),
            self.source_tokenizer,
            self.target_tokenizer,
            search or self.spec.search,
            self.device,
        )

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
    ) -> Iterator[Answer]:
        """Answers in order, in memory that does not grow with the input."""
        task, line = self.task(search), 1
        for some in windows(texts, window):
            yield from task.answer(some, wishes, line, truncate, keep)
            line += len(some)

    def score(self, pairs: Iterable[tuple[str, str]], truncate: bool = False) -> Iterator[Scored]:
        """log p(target | source), token by token."""
        task, line = self.task(), 1
        for some in windows(pairs, WINDOW):
            yield from task.score(some, line, truncate)
            line += len(some)

    def evaluate(
        self, pairs: Sequence[tuple[str, str]], metric: str | None = None, search: SearchSpec | None = None
    ) -> Evaluation:
        """Answer all sources and judge the answers by the run's metric, or another."""
        judge = metric_named(metric or self.spec.evaluation.metric)
        answers = [answer.text for answer in self.stream((source for source, _ in pairs), search)]
        score = judge.compute(answers, [reference for _, reference in pairs])
        return Evaluation(judge.name, score.value, score.signature, len(pairs))

    def trace(self, source: str, target: str | None = None) -> Trace:
        """What the model looked at while it wrote ``target`` (its own answer when none is given)."""
        tokenizer = self.target_tokenizer
        ids = tokenizer.encode(self(source) if target is None else target)
        tokens: Tokens = self.task().source_tokens(source)
        source_pieces = self.source_tokenizer.pieces(tokens.ids[0, :-1].tolist())
        return trace_pair(
            self.model, tokens, [tokenizer.begin, *ids, tokenizer.end], source_pieces, tokenizer.pieces(ids)
        )


def load(path: str | Path, device: str | None = None) -> Run:
    """Open a run folder. A damaged one is refused with the name of the file at fault."""
    folder = RunFolder.open(Path(path))
    spec = SystemSpec.from_dict(folder.record.spec, where=str(folder.path / "regard.json"))
    tokenizers = read_tokenizers(folder)
    if not folder.has_weights():
        raise RunError(f"{path}: training has not yet saved any weights here")
    chosen = choose_device(device)
    model = spec.model.build({"source": tokenizers[0].size, "target": tokenizers[1].size})
    folder.load_into(model)
    return Run(folder.path, spec, model.to(chosen).eval(), tokenizers, chosen)


def read_tokenizers(folder: RunFolder) -> tuple[Tokenizer, Tokenizer]:
    if "tokenizer.json" in folder.record.files:
        shared = _tokenizer(folder, "tokenizer.json")
        return shared, shared
    return _tokenizer(folder, "source.tokenizer.json"), _tokenizer(folder, "target.tokenizer.json")


def tokenizer_files(source: Tokenizer, target: Tokenizer) -> dict[str, bytes]:
    if source is target:
        return {"tokenizer.json": source.to_json().encode()}
    return {
        "source.tokenizer.json": source.to_json().encode(),
        "target.tokenizer.json": target.to_json().encode(),
    }


def windows(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some


def _tokenizer(folder: RunFolder, name: str) -> Tokenizer:
    return Tokenizer.from_json(folder.read_file(name).decode(), where=folder.path / name)
