"""Who of an engine's workers is given what."""

import numpy as np

ENOUGH, LEAST = 512, 64
"""Tokens that are given together: from which on more of them make it hardly faster; and so few that other
workers are not asked to help."""


def shares(lengths: np.ndarray, workers: int, budget: int) -> list[list[int]]:
    """Rows of like length together, the shortest first; they are to be given out from the last to the first,
    so that no worker has to wait long for another at the end."""
    if len(lengths) == 1:
        return [[0]]
    order = np.argsort(lengths, kind="stable")
    if int(lengths.sum()) < 2 * workers * min(ENOUGH, budget):
        return _evenly(lengths, order, workers)
    return _ever_smaller(lengths, order, workers, budget)


def _evenly(lengths: np.ndarray, order: np.ndarray, workers: int) -> list[list[int]]:
    """What is little: a batch for each worker. Cut by a budget, the first would hold nearly everything and
    the last next to nothing."""
    tokens = int(lengths.sum())
    count = max(1, min(workers, tokens // LEAST))
    middles = np.cumsum(lengths[order]) - lengths[order] / 2
    dealt = [order[middles // (tokens / count) == number].tolist() for number in range(count)]
    return [rows for rows in dealt if rows]


def _ever_smaller(lengths: np.ndarray, order: np.ndarray, workers: int, budget: int) -> list[list[int]]:
    """From the longest rows on, large batches first: what is left when one is cut is enough for every worker
    twice (Polychronopoulos and Kuck 1987). Batches of one size leave a worker without work at the end for as
    long as one takes, which is much where there are few."""
    left, end, batches = int(lengths.sum()), len(order), list[list[int]]()
    while end:
        size = max(min(ENOUGH, budget), min(budget, left // (2 * workers)))
        begin = max(0, end - max(1, size // int(lengths[order[end - 1]])))
        batches.append(order[begin:end].tolist())
        left, end = left - int(lengths[order[begin:end]].sum()), begin
    return batches[::-1]
