"""Who of an engine's workers is given what."""

from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from regard.engines.shares import BUDGET, LEAST, shares


@example([40] * 300, 2)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=400), st.integers(1, 4))
def test_every_row_once_the_like_together_and_no_worker_without_work(rows: list[int], workers: int) -> None:
    lengths = np.array(rows)
    dealt = shares(lengths, workers)
    assert sorted(row for some in dealt for row in some) == list(range(len(rows)))
    for shorter, longer in pairwise(dealt):
        assert lengths[shorter].max() <= lengths[longer].min()
    tokens = [int(lengths[some].sum()) for some in dealt]
    if sum(rows) < 2 * workers * BUDGET:
        even = sum(rows) / max(1, min(workers, sum(rows) // LEAST))
        assert max(tokens) <= even + max(rows)


def test_a_batch_of_a_server_is_dealt_out_evenly() -> None:
    """Sixty-four clients ask for one text each: both halves of a machine shall be busy with the half of them
    that waits."""
    lengths = np.array([5, 6, 7, 8] * 8)
    tokens = [int(lengths[some].sum()) for some in shares(lengths, 2)]
    assert len(tokens) == 2
    assert max(tokens) <= 112
