"""Shards change how a step is computed, not what it computes, and threads decide nothing."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from regard.core.precision import Precision
from regard.core.randomness import current_generator
from regard.core.sequences import Tokens
from regard.data.pair_batches import PairBatch
from regard.objectives.next_token import NextTokenSpec
from regard.objectives.objective import Outcome, Progress
from regard.recipes.transformer import quick_transformer
from regard.training.optimisation import SGD, Adam, groups_of
from regard.training.schedules import Constant
from regard.training.side_by_side import SideBySide
from regard.training.stepping import Placed, Stepper
from tests.training.toy import Alone

WORDS = 30


def batch(rows: int = 80, seed: int = 0) -> PairBatch:
    """Rows of 12 to 20 tokens on each side, in order of length as batches are."""
    random = np.random.default_rng(seed)
    lengths = np.sort(random.integers(12, 21, size=rows))
    source, target = (
        Tokens.pad([random.integers(4, WORDS, size=length) for length in lengths], 0) for _ in range(2)
    )
    return PairBatch(source, target, np.arange(rows))


def train(
    shards: int, dropout: float, steps: int = 3, slow: bool = False, precision: Precision = "float32"
) -> nn.Module:
    torch.manual_seed(0)
    spec = quick_transformer(layers=1, width=16, hidden=32, heads=2, dropout=dropout)
    model = spec.build({"source": WORDS, "target": WORDS}).train()
    # Adam would blow up the rounding of gradients that are zero, such as those of the keys' bias.
    optimiser = SGD().build(groups_of(model))
    schedule = Constant(peak=1.0).build(None)
    objective, cpu = NextTokenSpec(smoothing=0.1).build(), torch.device("cpu")
    stepper = Stepper(model, objective, optimiser, schedule, 1.0, 7, cpu, shards, precision)
    if slow:  # no threads: one shard after the other
        stepper.side_by_side.run = lambda work: [piece() for piece in work]  # type: ignore[method-assign]
    for step in range(1, steps + 1):
        stepper.take(step, [Placed(0, step, batch(seed=step))], "")
    return model


@pytest.fixture(autouse=True)
def some_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_without_dropout_shards_make_no_difference() -> None:
    assert len(batch().split(2)) == 2
    for one, two in zip(train(1, 0.0).parameters(), train(2, 0.0).parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_threads_end_with_the_same_bits_as_one_after_the_other(precision: Precision) -> None:
    at_once, again, in_turn = (train(2, 0.3, slow=slow, precision=precision) for slow in (False, False, True))
    for a, b, c in zip(at_once.parameters(), again.parameters(), in_turn.parameters(), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)


@torch.no_grad()
def distance(one: nn.Module, other: nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return sum(float((a - b).norm() ** 2) for a, b in pairs) ** 0.5


def test_rounded_factors_lead_near_the_same_weights() -> None:
    start, exact, rounded = train(2, 0.3, steps=0), train(2, 0.3), train(2, 0.3, precision="bfloat16")
    assert all(weight.dtype == torch.float32 for weight in rounded.parameters())
    assert 0 < distance(exact, rounded) < 0.1 * distance(exact, start)


def test_every_shard_has_its_own_random_numbers() -> None:
    drawn: dict[int, torch.Tensor] = {}

    @Alone
    def objective(model: nn.Module, shard: PairBatch, progress: Progress) -> Outcome:
        drawn[int(shard.rows[0])] = torch.rand(3, generator=current_generator())
        return Outcome(model.weight.sum(), 1, {})  # type: ignore[union-attr, operator]

    def draw(step: int) -> list[torch.Tensor]:
        model = nn.Linear(2, 2)
        optimiser = Adam().build(groups_of(model))
        schedule = Constant(peak=1e-2).build(None)
        stepper = Stepper(model, objective, optimiser, schedule, 1.0, 7, torch.device("cpu"), 2)
        drawn.clear()
        stepper.take(step, [Placed(0, step, batch())], "")
        return [drawn[row] for row in sorted(drawn)]

    first, second = draw(1)
    assert not torch.equal(first, second)
    for again, before in zip(draw(1), (first, second), strict=True):
        assert torch.equal(again, before)
    assert not torch.equal(draw(2)[0], first)
    assert current_generator() is torch.default_generator


def test_results_come_in_order_and_the_cores_are_shared() -> None:
    torch.set_num_threads(2)
    side_by_side = SideBySide(2)
    seen = side_by_side.run([lambda: (0, torch.get_num_threads()), lambda: (1, torch.get_num_threads())])
    assert seen == [(0, 1), (1, 1)]
    assert torch.get_num_threads() == 2
    assert side_by_side.run([lambda: torch.get_num_threads()]) == [2]


@pytest.mark.parametrize("guilty", [0, 1])
def test_an_error_in_any_shard_comes_out_when_all_have_stopped(guilty: int) -> None:
    finished = threading.Event()

    def fail() -> None:
        raise ValueError("no")

    pieces = [finished.set, finished.set]
    pieces[guilty] = fail
    with pytest.raises(ValueError, match="no"):
        SideBySide(2).run(pieces)
    assert finished.is_set()


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_a_split_batch_has_every_row_once_and_no_needless_padding(parts: int) -> None:
    whole = batch(rows=200)
    pieces = whole.split(parts)
    assert len(pieces) == parts
    assert np.concatenate([piece.rows for piece in pieces]).tolist() == whole.rows.tolist()
    for piece in pieces:
        for ours, theirs in ((piece.source, whole.source), (piece.target, whole.target)):
            assert ours.real.any(0).all()
            length = ours.ids.shape[1]
            assert torch.equal(ours.ids, theirs.ids[piece.rows, :length])
            assert not theirs.real[piece.rows, length:].any()


def test_small_batches_stay_whole() -> None:
    small = batch(rows=20)
    assert small.split(4) == [small]


def test_gradients_that_are_one_tensor_are_not_scaled_twice() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))

    @Alone
    def objective(model: nn.Module, shard: PairBatch, progress: Progress) -> Outcome:
        slopes = torch.tensor([1.0, 2.0, 3.0])
        return Outcome(((model.a + model.b) * slopes).sum(), 4, {})  # type: ignore[operator]

    model = Sum()
    optimiser = SGD().build(groups_of(model))
    stepper = Stepper(model, objective, optimiser, lambda step: 1.0, None, 7, torch.device("cpu"), 2)
    stepper.take(1, [Placed(0, 1, batch())], "")
    for weight in model.parameters():
        torch.testing.assert_close(weight.detach(), torch.tensor([-0.25, -0.5, -0.75]))


_SLICING = """
import torch
from torch import nn

from regard.objectives.objective import Outcome
from regard.training.optimisation import SGD, groups_of
from regard.training.schedules import Constant
from regard.training.stepping import Placed, Stepper
from tests.training.test_side_by_side import batch


class Slicing:
    def __call__(self, model, batch, progress, carried=None):
        for _ in range(5_000):  # nothing is kept: each time is the first
            model.weight * model.weight[:, :1].detach()
        return Outcome(model.weight.sum(), 1, {})


model = nn.Linear(40, 400)
optimiser, schedule = SGD().build(groups_of(model)), Constant(peak=0.1).build(None)
stepper = Stepper(model, Slicing(), optimiser, schedule, 1.0, 7, torch.device("cpu"), shards=2)
for step in range(1, 9):
    stepper.take(step, [Placed(0, 0, batch())], "")
"""


def test_threads_that_slice_a_weight_do_not_wait_for_each_other_for_ever() -> None:
    """A process of its own: who waits there hears no signal."""
    subprocess.run([sys.executable, "-c", _SLICING], check=True, timeout=100)
