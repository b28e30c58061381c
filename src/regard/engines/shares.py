"""Who of an engine's workers is given what."""

import numpy as np

from regard.data.batches import evaluation_batches

BUDGET, ENOUGH, LEAST = 2048, 512, 64
"""Tokens that are given together: at most, those of all hypotheses counted; from which on more of them make
it hardly faster; and so few that other workers are not asked to help."""
SHORTLISTED_BUDGET = 1024
"""At most, where less has to be looked at for fewer of them."""


def shares(lengths: np.ndarray, workers: int, budget: int = BUDGET) -> list[list[int]]:
    """Rows of like length together, the shortest first: no worker shall wait long for another at the end.

    What is little is dealt out evenly, a batch for each worker, or two where both are still large. Cut by a
    budget, the first batch would hold nearly everything and the last one next to nothing.
    """
    if len(lengths) == 1:
        return [[0]]
    tokens = int(lengths.sum())
    if tokens >= 2 * workers * budget:
        bulk = evaluation_batches(lengths[:, None], max(budget, int(lengths.max())))
        return [batch.tolist() for batch in bulk]
    wanted = 2 * workers if tokens >= 2 * workers * ENOUGH else workers
    count = max(1, min(wanted, tokens // LEAST))
    order = np.argsort(lengths, kind="stable")
    middles = np.cumsum(lengths[order]) - lengths[order] / 2
    dealt = [order[middles // (tokens / count) == number].tolist() for number in range(count)]
    return [rows for rows in dealt if rows]
