"""Who of an engine's workers is given what."""

from itertools import pairwise, product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.engines.served import Translators
from regard.engines.shares import ENOUGH, LEAST, shares

BUDGET = Translators.budgets[0]


@example([40] * 300, 2)
@example([13] * 1014, 2)
@example([7] * 1170, 4)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=1200), st.integers(1, 4))
def test_every_row_once_the_like_together_and_no_worker_without_work(rows: list[int], workers: int) -> None:
    lengths = np.array(rows)
    dealt = shares(lengths, workers, BUDGET)
    assert sorted(row for some in dealt for row in some) == list(range(len(rows)))
    for shorter, longer in pairwise(dealt):
        assert lengths[shorter].max() <= lengths[longer].min()
    even = sum(rows) / max(1, min(workers, sum(rows) // LEAST))
    # Whoever ends last began when nobody had less to do, with one of the small batches (Graham 1966).
    assert max(_loads(lengths, dealt, workers)) <= even + max(ENOUGH * (1 - 1 / workers), max(rows))


def _loads(lengths: np.ndarray, dealt: list[list[int]], workers: int) -> list[int]:
    """Tokens of each worker, where the one who has had least takes the next batch."""
    loads = [0] * workers
    for some in reversed(dealt):
        loads[loads.index(min(loads))] += int(lengths[some].sum())
    return loads


@given(st.lists(st.integers(1, 60), min_size=1, max_size=1200), st.sampled_from([409, 1024, BUDGET]))
def test_a_batch_keeps_within_the_budget_as_it_is_padded(rows: list[int], budget: int) -> None:
    lengths = np.array(rows)
    for some in shares(lengths, 2, budget):
        little = sum(rows) < 4 * min(ENOUGH, budget)
        assert little or len(some) * lengths[some].max() <= budget


def test_a_batch_of_a_server_is_dealt_out_evenly() -> None:
    """Sixty-four clients ask for one text each: both halves of a machine shall be busy with the half of them
    that waits."""
    lengths = np.array([5, 6, 7, 8] * 8)
    tokens = [int(lengths[some].sum()) for some in shares(lengths, 2, BUDGET)]
    assert len(tokens) == 2
    assert max(tokens) <= 112


def test_hypotheses_count_in_what_is_searched_at_once() -> None:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="character", size=20), ["ab"])
    served = Translators(tokenizer, tokenizer, positions=512)
    given, longest = [[1] * 16] * 2000, [30] * 2000
    for beam, budget in product((1, 5), served.budgets):
        batches = list(served.batches(given, longest, beam == 1, beam, workers=2, budget=budget))
        tokens = [16 * len(batch.rows) * beam for batch in batches]
        # What is left for others bounds batches, too.
        assert max(tokens) <= min(budget, 8000 * beam)
        assert max(tokens) > min(budget, 8000 * beam) - 16 * beam - 16 * 8
        assert sum(len(batch.rows) for batch in batches) == 2000
