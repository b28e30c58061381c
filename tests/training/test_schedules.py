"""Rates by hand: every schedule is a pure function of the step."""

import math

import pytest
import torch

from regard.core.errors import UsageError
from regard.training.plan import TrainingSpec
from regard.training.schedules import (
    Constant,
    Cosine,
    Exponential,
    InverseSqrt,
    Linear,
    ScheduleSpec,
    SlantedTriangular,
)


@pytest.mark.parametrize(
    ("spec", "steps", "expected"),
    [
        (Constant(peak=0.5), None, {1: 0.5, 2: 0.5, 10**6: 0.5}),
        (Constant(peak=0.5, warmup=4), None, {1: 0.125, 2: 0.25, 4: 0.5, 5: 0.5}),
        (InverseSqrt(peak=0.1, warmup=4), None, {1: 0.025, 4: 0.1, 16: 0.05, 100: 0.02}),
        (InverseSqrt(peak=0.1), None, {1: 0.1, 4: 0.05, 100: 0.01}),
        (Exponential(peak=8.0, decay=0.5, every=10), None, {10: 4.0, 20: 2.0, 5: 8 * math.sqrt(0.5)}),
        (
            Exponential(peak=8.0, warmup=2, hold=3, decay=0.5, every=10),
            None,
            {1: 4.0, 2: 8.0, 5: 8.0, 15: 4.0},
        ),
        (Linear(peak=1.0, warmup=2), 11, {1: 0.5, 2: 1.0, 7: 0.5, 11: 0.1, 12: 0.0, 99: 0.0}),
        (Linear(peak=1.0, floor=0.2), 9, {5: 0.6, 10: 0.2}),
        (Cosine(peak=2.0, warmup=2), 11, {1: 1.0, 2: 2.0, 7: 1.0, 12: 0.0, 99: 0.0}),
        # p rises to 1 at step 10 of 100 and is back at 0 with the last; the rate is (1 + 31 p) / 32.
        (SlantedTriangular(peak=32.0), 100, {1: 4.1, 5: 16.5, 10: 32.0, 55: 16.5, 100: 1.0, 999: 1.0}),
        (SlantedTriangular(peak=1.0, cut=0.5, ratio=5.0), 8, {2: 0.6, 4: 1.0, 6: 0.6, 8: 0.2}),
        (SlantedTriangular(peak=1.0, warmup=2, ratio=5.0), 10, {1: 0.6, 2: 1.0, 6: 0.6, 10: 0.2}),
        (SlantedTriangular(peak=8.0, ratio=4.0), None, {1: 2.0, 1000: 2.0}),
        (Cosine(peak=2.0, floor=0.5), 8, {3: 1.5 + 0.5 * math.cos(math.pi / 3), 9: 1.0}),
    ],
)
def test_values_by_hand(spec: ScheduleSpec, steps: int | None, expected: dict[int, float]) -> None:
    rate = spec.build(steps)
    assert {step: rate(step) for step in expected} == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("width", "warmup"), [(512, 4000), (128, 37), (7, 1)])
def test_inverse_sqrt_is_equation_3(width: int, warmup: int) -> None:
    rate = InverseSqrt.of_width(width, warmup).build(None)
    for step in (1, 2, warmup - 1 or 1, warmup, warmup + 1, 3 * warmup, 100_000):
        assert rate(step) == pytest.approx(width**-0.5 * min(step**-0.5, step * warmup**-1.5))


def test_cosine_is_torchs() -> None:
    """torch counts from 0 where we count from 1 and begins at the peak, as our step ``warmup`` does."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=20, eta_min=0.03)
    ours = Cosine(peak=0.3, warmup=1, floor=0.1).build(20)
    for step in range(1, 21):
        assert ours(step) == pytest.approx(optimiser.param_groups[0]["lr"])
        optimiser.step()
        theirs.step()


@pytest.mark.parametrize("spec", [Cosine(peak=0.5, warmup=3), Linear(peak=0.5, warmup=3)])
def test_while_the_end_is_not_known_the_rate_stays_up(spec: ScheduleSpec) -> None:
    assert [spec.build(None)(step) for step in (3, 4, 1000)] == [0.5] * 3


@pytest.mark.parametrize("spec", [Cosine(), Linear()])
def test_what_needs_an_end_says_so(spec: ScheduleSpec) -> None:
    with pytest.raises(UsageError, match=rf"{spec.kind()} schedule must know when training ends: give steps"):
        TrainingSpec.from_dict({"schedule": spec.to_dict(), "validation": {"patience": 3}})


def test_a_warmup_takes_half_of_the_steps_at_most() -> None:
    rates = [Linear(peak=1.0, warmup=10).build(8)(step) for step in range(1, 9)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1.0, 0.8, 0.6, 0.4, 0.2])
    assert Linear(peak=1.0, warmup=10).build(1)(1) == 0.5


@pytest.mark.parametrize(
    "spec", [Constant(), InverseSqrt(warmup=3), Exponential(every=7), Cosine(floor=0.25), Linear(warmup=2)]
)
def test_specs_go_through_json(spec: ScheduleSpec) -> None:
    assert ScheduleSpec.from_json(spec.to_json()) == spec


def test_an_impossible_rate_is_refused() -> None:
    with pytest.raises(UsageError, match=r"peak: got -0.1"):
        ScheduleSpec.from_dict({"kind": "constant", "peak": -0.1})


def test_a_warmup_may_be_a_share_of_the_steps() -> None:
    spec = Linear(peak=1.0, warmup_share=0.1)
    assert spec.build(100)(10) == 1.0
    assert spec.build(100)(5) == 0.5
    assert spec.build(1000)(50) == 0.5
    assert Linear(peak=1.0, warmup=20, warmup_share=0.1).build(100)(10) == 0.5
    assert spec.build(None)(1) == 1.0


def test_epochs_are_steps_once_their_batches_are_counted() -> None:
    spec = TrainingSpec(epochs=2.5, accumulate=2, schedule=Linear(warmup_share=0.1))
    assert spec.counted(100).steps == 125
    assert spec.counted(1).steps == 1
    assert TrainingSpec(epochs=2.0, steps=7).counted(100).steps == 7
    assert TrainingSpec(steps=7).counted(100).steps == 7
    assert not spec.counted(100).planned_by_clock
