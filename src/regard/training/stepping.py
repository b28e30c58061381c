"""One optimiser step: several batches in, one update out, nothing random but what seed and step decide."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from regard.core.errors import DataError, TrainingError
from regard.core.precision import Precision, factors_of, factors_rounded_to
from regard.core.randomness import drawing_from
from regard.core.state import State, concatenate_rows, rows_between
from regard.objectives.objective import Objective, Progress
from regard.training.optimisation import (
    add_gradients,
    gradients_of,
    is_finite,
    scale_gradients,
    set_rate,
    weights_of,
)
from regard.training.schedules import Schedule
from regard.training.side_by_side import SideBySide, used_by_several


@runtime_checkable
class Data(Protocol):
    """Batches, epoch by epoch; each a pure function of seed, epoch and index."""

    def epoch(self, number: int) -> Sequence[Any]: ...


@runtime_checkable
class Prefetch(Protocol):
    """Goes through ``sequence`` from ``start`` on, perhaps preparing items ahead of time."""

    def __call__(self, sequence: Sequence[Any], start: int) -> Iterable[Any]: ...


def one_by_one(sequence: Sequence[Any], start: int) -> Generator[Any, None, None]:
    """Prepare each batch when it is asked for."""
    for index in range(start, len(sequence)):
        yield sequence[index]


@dataclass(frozen=True)
class Placed:
    """A batch and where in the data it stands."""

    epoch: int
    index: int
    batch: Any
    padding: float | None = None
    """Share of padding in this epoch's batches, where the data tells it."""
    notice: str | None = None
    """What a person should know about this epoch's data, told with its first batch."""


def batches_from(data: Data, epoch: int, index: int, prefetch: Prefetch) -> Generator[Placed, None, None]:
    """All batches from a place on, epoch after epoch without end."""
    while True:
        batches = data.epoch(epoch)
        if len(batches) == 0:
            raise DataError(f"the training data has no batch in epoch {epoch}")
        padding, notice = (getattr(batches, name, None) for name in ("padding_share", "notice"))
        items = iter(prefetch(batches, index))
        try:
            for place, batch in enumerate(items, start=index):
                yield Placed(epoch, place, batch, padding, notice if place == 0 else None)
        finally:
            if isinstance(items, Generator):
                items.close()
        epoch, index = epoch + 1, 0


def mix(*numbers: int) -> int:
    """A 64-bit number that looks random and depends on every argument and their order (splitmix64)."""
    mask = 2**64 - 1
    state = 0
    for number in numbers:
        state = (state + number + 0x9E3779B97F4A7C15) & mask
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
        state ^= state >> 31
    return state


def set_random(device: torch.device, *numbers: int) -> None:
    """Make what torch draws next a function of ``numbers``: no generator state has to be stored."""
    seed = mix(*numbers)
    # torch.manual_seed does the same but asks every kind of accelerator: 100 µs instead of 2.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


class Taken(NamedTuple):
    """What a step did."""

    loss: float
    norm: float
    rate: float
    tokens: int
    parts: dict[str, float]
    padding: float | None


class Stepper:
    """Takes steps: gradients are means over all predictions of a step, however many batches they come in."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        optimiser: torch.optim.Optimizer,
        schedule: Schedule,
        clip: float | None,
        seed: int,
        device: torch.device,
        shards: int = 1,
        precision: Precision = "float32",
    ) -> None:
        self.model, self.objective, self.optimiser = model, objective, optimiser
        self.schedule, self.clip = schedule, clip
        self.seed, self.device = seed, device
        # An accelerator works on one thing at a time, and best on a large one.
        self.side_by_side = SideBySide(shards if device.type == "cpu" else 1)
        self.factors = factors_of(precision, device)
        self.carried: State = None
        """What the last batch left for the next; part of what a checkpoint keeps."""

    def take(self, step: int, batches: Sequence[Placed], last_good: str) -> Taken:
        """Step number ``step`` (from 1). A loss or gradient that is not finite changes nothing and raises."""
        self.optimiser.zero_grad(set_to_none=True)
        weights = weights_of(self.optimiser)
        losses, tokens = [], 0
        parts: dict[str, float] = {}
        for turn, placed in enumerate(batches):
            set_random(self.device, self.seed, step, turn)
            costs = self._costs(step, turn, placed, weights)
            self.carried = concatenate_rows([cost.carried for cost in costs])
            losses.append(torch.stack([cost.loss for cost in costs]).sum())
            for cost in costs:
                add_gradients(weights, cost.gradients)
                tokens += cost.count
                for name, value in cost.parts.items():
                    parts[name] = parts.get(name, 0.0) + value
        count = max(tokens, 1)
        gradients = gradients_of(self.optimiser)
        # The only wait for the device in a step.
        loss, norm = (torch.stack((torch.stack(losses).sum(), get_total_norm(gradients))) / count).tolist()
        if not is_finite(loss, norm):
            self.optimiser.zero_grad(set_to_none=True)
            raise TrainingError(_not_finite(step, loss, norm, batches, losses, last_good))
        scale_gradients(gradients, count, norm, self.clip)
        rate = self.schedule(step)
        set_rate(self.optimiser, rate)
        with factors_rounded_to(self.factors):
            self.optimiser.step()
        means = {name: value / count for name, value in parts.items()}
        return Taken(loss, norm, rate, tokens, means, batches[-1].padding)

    def _costs(self, step: int, turn: int, placed: Placed, weights: Sequence[nn.Parameter]) -> "list[_Cost]":
        progress = Progress(step, placed.epoch, self.seed)
        shards = split(placed.batch.to(self.device), self.side_by_side.most)

        def cost_of(shard: Any, carried: State, generator: torch.Generator | None) -> _Cost:
            with drawing_from(generator), factors_rounded_to(self.factors):
                outcome = self.objective(self.model, shard, progress, carried)
                gradients = torch.autograd.grad(outcome.loss, weights, allow_unused=True)
            return _Cost(outcome.loss.detach(), outcome.count, outcome.parts, gradients, outcome.carried)

        own = (
            [None]
            if len(shards) == 1
            else [
                torch.Generator().manual_seed(mix(self.seed, step, turn, number))
                for number in range(len(shards))
            ]
        )
        carried = self._carried_by(shards)
        work = [partial(cost_of, *given) for given in zip(shards, carried, own, strict=True)]
        with used_by_several(weights if len(work) > 1 else ()):
            return self.side_by_side.run(work)

    def _carried_by(self, shards: Sequence[Any]) -> list[State]:
        """To every shard the state of its own rows."""
        if self.carried is None:
            return [None] * len(shards)
        bounds = [0, *accumulate(len(shard.rows) for shard in shards)]
        return [rows_between(self.carried, begin, end) for begin, end in pairwise(bounds)]


@dataclass(frozen=True)
class _Cost:
    """What a shard cost, and the slopes of that."""

    loss: Tensor
    count: int
    parts: dict[str, float]
    gradients: tuple[Tensor | None, ...]
    carried: State


def split(batch: Any, parts: int) -> list[Any]:
    """Batches that cannot be split stay whole."""
    if parts == 1 or not hasattr(batch, "split"):
        return [batch]
    found: list[Any] = batch.split(parts)
    return found


def _not_finite(
    step: int,
    loss: float,
    norm: float,
    batches: Sequence[Placed],
    losses: Sequence[Tensor],
    last_good: str,
) -> str:
    what = f"the loss is {loss}" if not is_finite(loss) else f"the gradient norm is {norm} (loss {loss:.4g})"
    guilty = [
        placed
        for placed, part in zip(batches, losses, strict=True)
        if is_finite(loss) or not is_finite(part.item())
    ]
    places = "; ".join(
        f"epoch {placed.epoch}, batch {placed.index}{_rows(placed.batch)}" for placed in guilty or batches
    )
    return (
        f"step {step}: {what} ({places}). The step was not applied. {last_good}. "
        "Look at these rows, or start again with a lower training.schedule.peak or training.clip"
    )


def _rows(batch: Any) -> str:
    rows = getattr(batch, "rows", None)
    if rows is None:
        return ""
    listed = [str(int(row)) for row in rows]
    return f", rows {', '.join(listed[:20])}" + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")
