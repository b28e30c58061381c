"""A training small enough to be killed many times: tied weights, dropout, uneven batches, a held-out set."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.spec import Spec
from regard.core.state import State
from regard.objectives.objective import Objective, Outcome, Progress
from regard.training.events import Watcher
from regard.training.loop import train
from regard.training.optimisation import AdamW
from regard.training.plan import AveragingSpec, CheckpointSpec, TrainingSpec, ValidationSpec
from regard.training.result import TrainingResult
from regard.training.run_folder import RunFolder
from regard.training.schedules import InverseSqrt
from regard.training.signals import StopSignal

VOCABULARY, WIDTH, SEED = 11, 7, 5

SPEC = TrainingSpec(
    steps=13,
    optimiser=AdamW(weight_decay=0.1),
    schedule=InverseSqrt(peak=0.05, warmup=5),
    clip=0.5,
    accumulate=2,
    validation=ValidationSpec(every=3),
    averaging=AveragingSpec(ema=0.8, last=3),
    checkpoints=CheckpointSpec(seconds=None, steps=2),
)


class WholeSpec(Spec):
    """Stands for a recipe."""

    width: int = WIDTH
    training: TrainingSpec = SPEC


class Model(nn.Module):
    """Guesses the next token from this one; input and output embeddings are one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(0.2)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, tokens: Tensor) -> Tensor:
        if self.training:
            self.calls += 1
        return self.output(self.norm(self.dropout(F.relu(self.hidden(self.embedding(tokens))))))


def make_model() -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return Model()


@dataclass(frozen=True)
class Batch:
    tokens: Tensor
    rows: list[int]

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(self.tokens.to(device), self.rows)


class Batches(Sequence[Batch]):
    """Each batch is a function of (epoch, index) alone; the token after t is mostly 3t + 1."""

    padding_share = 0.25

    def __init__(self, number: int, count: int = 5) -> None:
        self.number, self.count = number, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Batch:  # type: ignore[override]
        generator = torch.Generator().manual_seed(1000 * self.number + index)
        rows = torch.randint(2, 6, (), generator=generator).item()
        tokens = torch.randint(VOCABULARY, (int(rows), 6), generator=generator)
        for time in range(1, 6):
            tokens[:, time] = (3 * tokens[:, time - 1] + 1) % VOCABULARY
        return Batch(tokens, [100 * index + row for row in range(int(rows))])


class Data:
    def epoch(self, number: int) -> Batches:
        return Batches(number)


class Alone(Objective):
    """A function of model, batch and progress as an objective whose batches stand alone."""

    def __init__(self, function: Callable[[nn.Module, Any, Progress], Outcome]) -> None:
        self.function = function

    def __call__(self, model: nn.Module, batch: Any, progress: Progress, carried: State = None) -> Outcome:
        return self.function(model, batch, progress)


@Alone
def objective(model: nn.Module, batch: Batch, progress: Progress) -> Outcome:
    logits = model(batch.tokens[:, :-1]).flatten(0, 1)
    loss = F.cross_entropy(logits, batch.tokens[:, 1:].flatten(), reduction="sum")
    return Outcome(loss, len(logits), {"nll": loss.item()})


def validate(model: nn.Module) -> dict[str, float]:
    tokens = torch.arange(VOCABULARY)
    wanted = (3 * tokens + 1) % VOCABULARY
    logits = model(tokens)
    exact = (logits.argmax(-1) == wanted).double().mean().item()
    return {"loss": F.cross_entropy(logits, wanted).item(), "exact": exact}


def open_folder(path: Path, spec: TrainingSpec = SPEC) -> RunFolder:
    whole = WholeSpec(training=spec)
    return RunFolder.create(
        path, whole, SEED, "fingerprint", {"tokenizer.json": b'{"model": "toy"}'}, spec.may_differ()
    )


def run(
    path: Path,
    spec: TrainingSpec = SPEC,
    watchers: Sequence[Watcher] = (),
    stop: StopSignal | None = None,
    **changes: Any,
) -> TrainingResult:
    """The command: start, or go on."""
    parts: dict[str, Any] = {
        "model": make_model(),
        "objective": objective,
        "data": Data(),
        "validate": validate,
        "folder": open_folder(path, spec),
        **changes,
    }
    return train(spec=spec, seed=SEED, watchers=watchers, stop=stop, **parts)


_TIMES = ("seconds", "tokens_per_second", "log_size")


def log_of(path: Path) -> list[dict[str, Any]]:
    """The log without times, and without the notes of when it was started again."""
    events = [json.loads(line) for line in (path / "log.jsonl").read_text().splitlines()]
    kept = [event for event in events if event["event"] not in ("start", "notice")]
    return [{key: value for key, value in event.items() if key not in _TIMES} for event in kept]


def print_of(path: Path) -> dict[str, Any]:
    """All that two runs of the same command must have in common, bit for bit."""
    last = path / "checkpoints" / "last"
    files = [path / "model.safetensors", *sorted(last.glob("*.safetensors"))]
    state = json.loads((last / "state.json").read_text())
    return {
        **{str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
        "validated": sorted(file.name for file in (path / "checkpoints" / "validated").glob("*")),
        "state": {key: value for key, value in state.items() if key not in _TIMES},
        "log": log_of(path),
    }


class Killed(BaseException):
    """Stands for a process that is gone."""


class KillAt(Watcher):
    """Ends everything at one kind of event of one step."""

    def __init__(self, event: str, step: int) -> None:
        self._event, self._step = event, step

    def _consider(self, event: str, step: int) -> None:
        if (event, step) == (self._event, self._step):
            raise Killed

    def on_step(self, event: Any) -> None:
        self._consider("step", event.step)

    def on_validation(self, event: Any) -> None:
        self._consider("validation", event.step)

    def on_checkpoint(self, event: Any) -> None:
        self._consider("checkpoint", event.step)

    def on_end(self, event: Any) -> None:
        self._consider("end", event.step)
