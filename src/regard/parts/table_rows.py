"""Rows of a table of which a batch touches few: only those have a gradient."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def table_rows(
    table: Float[Tensor, "rows width"], ids: Int[Tensor, "*asked"]
) -> Float[Tensor, "*asked width"]:
    """What ``embedding(ids, table, sparse=True)`` gives.

    That has a gradient with a row for every id, however often it occurs, to be sorted and added by whoever
    uses it. Here they are added where they arise: every row is there once, in order, and is known to be.
    """
    found: Tensor = _Rows.apply(table, ids)  # type: ignore[no-untyped-call]
    return found


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table.index_select(0, ids.flatten()).view(*ids.shape, table.shape[1])

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor, None]:
        (ids,) = ctx.saved_tensors
        rows, sums = summed_by_row(ids.flatten(), incoming[0].reshape(-1, ctx.shape[1]))
        gradient = torch.sparse_coo_tensor(
            rows[None], sums, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return gradient, None


def summed_by_row(
    ids: Int[Tensor, "asked"], values: Float[Tensor, "asked width"]
) -> tuple[Int[Tensor, "rows"], Float[Tensor, "rows width"]]:
    """The ids that occur, ascending, and the sum of the values of each."""
    # Stable: equal ids are added in their order, always.
    ascending, order = ids.sort(stable=True)
    rows, times = ascending.unique_consecutive(return_counts=True)  # type: ignore[no-untyped-call]
    return rows, F.embedding_bag(order, values, times.cumsum(0) - times, mode="sum")
