"""Ranking chunks first must give what ranking everything gives."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.search.continuations import CHUNK, FEWEST_CHUNKS, best_continuations

LARGE = CHUNK * FEWEST_CHUNKS


@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.sampled_from([7, LARGE - 1, LARGE, LARGE + 1, LARGE + CHUNK - 1, 3 * LARGE + 5]),
    width=st.integers(1, 5),
    count=st.integers(1, 10),
    impossible=st.sampled_from([0.0, 0.5, 0.999]),
)
def test_the_best_are_the_best_of_all(seed, vocabulary, width, count, impossible):
    dice = torch.Generator().manual_seed(seed)
    count = min(count, width * vocabulary)
    log_probs = torch.randn(3 * width, vocabulary, generator=dice, dtype=torch.float64)
    log_probs[torch.rand(log_probs.shape, generator=dice) < impossible] = float("-inf")
    so_far = torch.randn(3, width, generator=dice, dtype=torch.float64)
    found = best_continuations(log_probs, so_far, count)

    totals = log_probs.view(3, width, vocabulary) + so_far[:, :, None]
    expected = totals.flatten(1).sort(dim=1, descending=True).values[:, :count]
    assert torch.equal(found.cumulative, expected)
    rows = torch.arange(3)[:, None].expand(3, count)
    assert torch.equal(totals[rows, found.slot, found.token], expected)
    real = expected > float("-inf")
    for names, some in zip((found.slot * vocabulary + found.token).tolist(), real.tolist(), strict=True):
        named = [name for name, one in zip(names, some, strict=True) if one]
        assert len(set(named)) == len(named)


@pytest.mark.parametrize("place", [0, CHUNK, LARGE + 2])
def test_nan_comes_to_the_top(place):
    log_probs = torch.zeros(4, LARGE + 3)
    log_probs[3, place] = float("nan")
    found = best_continuations(log_probs, torch.zeros(2, 2), 3)
    assert found.cumulative.isnan().any(1).tolist() == [False, True]
