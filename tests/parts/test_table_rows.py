"""Rows of a table and their gradient, beside torch's own lookup."""

import pytest
import torch
from torch import nn

from regard.parts.table_rows import table_rows


@pytest.mark.parametrize("shape", [(0,), (9,), (4, 5)], ids=["none", "a line", "groups"])
def test_is_what_torch_looks_up_with_a_gradient_that_has_every_row_once(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    table = nn.Parameter(torch.randn(7, 3))
    ids = torch.randint(0, 6, shape)
    ours, theirs = table_rows(table, ids), nn.functional.embedding(ids, table)
    assert torch.equal(ours, theirs)
    slope = torch.randn_like(ours)
    (mine,) = torch.autograd.grad(ours, table, slope)
    (other,) = torch.autograd.grad(theirs, table, slope)
    assert mine.is_coalesced(), "nobody sorts it again"
    assert mine.indices()[0].tolist() == sorted(set(ids.flatten().tolist()))
    torch.testing.assert_close(mine.to_dense(), other)
