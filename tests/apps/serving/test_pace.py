"""How fast a run is, and whether it is overloaded, by a clock that is set by hand."""

from dataclasses import dataclass

import pytest

from regard.apps.serving.pace import Pace


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_expected_before_anything_is_known() -> None:
    assert Pace().seconds(10**9) == 0.0


def test_batches_side_by_side_do_not_count_the_same_time_twice() -> None:
    clock = Clock()
    pace = Pace(clock)
    alone = Pace(clock)
    for _ in range(20):  # two of 100 tokens in every two seconds, or 100 in every one
        begun = clock.now
        clock.now += 1.0
        alone.ended(begun, 100)
        clock.now += 1.0
        alone.ended(begun + 1.0, 100)
        pace.ended(begun, 100)
        pace.ended(begun, 100)
    assert alone.seconds(100) == pytest.approx(1.0)
    assert pace.seconds(100) == pytest.approx(1.0, rel=0.4)


def test_time_without_work_is_not_counted() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(3):
        clock.now += 50.0
        begun = clock.now
        clock.now += 1.0
        pace.ended(begun, 10)
    assert pace.seconds(10) == pytest.approx(1.0)


def test_overload_is_that_nobody_was_answered_soon_for_a_while() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.rest()
    clock.now += 0.05
    assert not pace.overloaded
    clock.now += 1.0
    assert pace.overloaded
    pace.answered(clock.now - 0.5)
    assert pace.overloaded
    pace.answered(clock.now - 0.03)
    assert not pace.overloaded
    clock.now += 1.0
    pace.rest()
    assert not pace.overloaded


def test_an_overload_lasts_until_nobody_is_sent_away_any_more() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(5):
        pace.sent_away()
        clock.now += 0.3
        pace.answered(clock.now - 0.01)
        assert pace.overloaded
    clock.now += 0.3
    pace.answered(clock.now - 0.01)
    assert not pace.overloaded
