"""Every example once, no batch over budget, little padding, and an order that only (seed, epoch) decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import UsageError
from regard.data.batches import BatchPlan, evaluation_batches, plan_epoch


def mixture(count: int, seed: int = 0) -> np.ndarray:
    """Sentence lengths as corpora have them: log-normal, the two sides alike but not equal."""
    random = np.random.default_rng(seed)
    source = np.clip(np.exp(random.normal(3.0, 0.6, count)), 1, 200)
    target = np.clip(source * np.exp(random.normal(0.05, 0.25, count)), 1, 200)
    return np.stack((source, target), axis=1).astype(np.int32) + 2


def members(plan: BatchPlan) -> list[int]:
    return [int(row) for batch in plan for row in batch]


@given(
    lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=80),
    budget=st.integers(40, 300),
    seed=st.integers(0, 9),
    epoch=st.integers(0, 9),
)
def test_every_example_is_in_one_batch_and_no_batch_is_over_budget(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    table = np.asarray(lengths, dtype=np.int32).reshape(-1, 2)
    for plan in (plan_epoch(table, budget, seed, epoch), evaluation_batches(table, budget)):
        assert sorted(members(plan)) == list(range(len(lengths)))
        assert all(len(batch) * table[batch].max() <= budget for batch in plan)
        room = sum(len(batch) * int(table[batch].max(axis=0).sum()) for batch in plan)
        assert plan.padding_share == pytest.approx(1 - table.sum() / room if room else 0.0)


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=50), budget=st.integers(20, 60))
def test_one_field_is_enough(lengths: list[int], budget: int) -> None:
    table = np.asarray(lengths)[:, None]
    plan = plan_epoch(table, budget, 1, 2)
    assert sorted(members(plan)) == list(range(len(lengths)))
    assert all(len(batch) * table[batch].max() <= budget for batch in plan)


def test_batches_are_as_full_as_they_can_be() -> None:
    """No example at the start of a batch would have fitted into the one before it, in order of length."""
    table = mixture(3_001)
    plan = evaluation_batches(table, 1_008)  # a number of many divisors: some batches fit exactly
    for before, after in zip(plan, list(plan)[1:], strict=False):
        longer = np.concatenate((before, after[:1]))
        assert len(longer) * table[longer].max() > 1_008


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    table = mixture(2_003)
    first = members(plan_epoch(table, 1_009, 5, 7))
    assert first == members(plan_epoch(table, 1_009, 5, 7))
    assert first != members(plan_epoch(table, 1_009, 5, 8))
    assert first != members(plan_epoch(table, 1_009, 6, 7))


def test_epochs_bring_examples_into_different_company() -> None:
    table = mixture(20_011)
    company, batch_of = [], np.zeros((2, len(table)), dtype=np.int64)
    for epoch in (0, 1):
        plan = plan_epoch(table, 1_009, 0, epoch)
        company.append({frozenset(batch.tolist()) for batch in plan})
        for number, batch in enumerate(plan):
            batch_of[epoch, batch] = number
    assert len(company[0] & company[1]) < 0.05 * len(company[0])

    def together(labels: np.ndarray) -> float:
        sizes = np.unique(labels, return_counts=True)[1].astype(float)
        return float((sizes * (sizes - 1)).sum())

    again = together(batch_of[0] * len(table) + batch_of[1])
    assert again < 0.5 * together(batch_of[0])


def test_lengths_come_in_random_order() -> None:
    """Batches of neighbouring lengths must not follow one another: training would see a curriculum."""
    table = mixture(20_011)
    plan = plan_epoch(table, 2_003, 0, 0)
    longest = np.asarray([table[batch].max() for batch in plan], dtype=float)
    assert abs(np.corrcoef(longest[:-1], longest[1:])[0, 1]) < 0.15


@pytest.mark.parametrize(("budget", "most"), [(4_096, 0.08), (1_024, 0.045)])
def test_padding_is_small(budget: int, most: float) -> None:
    table = mixture(29_000)
    assert plan_epoch(table, budget, 0, 0).padding_share < most


def test_evaluation_goes_from_short_to_long() -> None:
    table = mixture(997)
    longest = [table[batch].max() for batch in evaluation_batches(table, 499)]
    assert longest == sorted(longest)


def test_an_example_over_budget_is_refused_by_number() -> None:
    table = np.asarray([[3, 4], [5, 31], [2, 2]])
    with pytest.raises(UsageError, match="example 1 has 31 tokens, but a batch holds at most 30"):
        plan_epoch(table, 30, 0, 0)


def test_positions_outside_an_epoch_do_not_exist() -> None:
    plan = plan_epoch(mixture(101), 499, 0, 0)
    with pytest.raises(IndexError, match=f"batch {len(plan)} of {len(plan)}"):
        plan[len(plan)]
    assert len(plan_epoch(np.zeros((0, 2), dtype=np.int32), 10, 0, 0)) == 0
