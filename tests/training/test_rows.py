"""Updates of single rows against torch's own Adagrad, and gradients by rows on their way through a step."""

import torch
from torch import nn

from regard.parts.table_rows import table_rows
from regard.training.optimisation import (
    Adam,
    Group,
    RowAdagrad,
    add_gradients,
    gradients_of,
    scale_gradients,
    set_rate,
)


def loss_of(table: nn.Parameter, ids: list[int], sparse: bool) -> torch.Tensor:
    rows = nn.functional.embedding(torch.tensor(ids), table, sparse=sparse)
    return (rows.sin() * torch.arange(1.0, len(ids) + 1)[:, None]).sum()


def test_a_table_one_value_wide_moves_as_under_adagrad() -> None:
    """Over rows of one value their mean square is the square: then it is Adagrad itself."""
    torch.manual_seed(0)
    ours, theirs = (nn.Parameter(torch.linspace(-1, 1, 9)[:, None].clone()) for _ in range(2))
    optimiser = RowAdagrad().build([Group([ours], True)])
    oracle = torch.optim.Adagrad([theirs], lr=0.1, eps=1e-10)
    for ids in ([1, 2, 2, 5], [2, 8, 0], [5, 5, 5, 1]):
        add_gradients([ours], torch.autograd.grad(loss_of(ours, ids, True), [ours]))
        gradients_of(optimiser)
        set_rate(optimiser, 0.1)
        optimiser.step()
        optimiser.zero_grad()
        oracle.zero_grad()
        loss_of(theirs, ids, False).backward()
        oracle.step()
    torch.testing.assert_close(ours, theirs)
    assert float(ours.detach()[3]) == float(torch.linspace(-1, 1, 9)[3]), "what did not occur did not move"


def test_of_a_row_the_mean_of_its_squares_is_remembered() -> None:
    table = nn.Parameter(torch.zeros(4, 2))
    optimiser = RowAdagrad().build([Group([table], True)])
    add_gradients(
        [table],
        torch.autograd.grad((table_rows(table, torch.tensor([2])) * torch.tensor([3.0, 4.0])).sum(), [table]),
    )
    set_rate(optimiser, 0.1)
    optimiser.step()
    assert optimiser.state[table]["sum"].tolist() == [0, 0, 12.5, 0]
    torch.testing.assert_close(table[2], -0.1 * torch.tensor([3.0, 4.0]) / 12.5**0.5)


def test_what_is_no_table_moves_as_under_adagrad() -> None:
    ours, theirs = (nn.Parameter(torch.linspace(-1, 1, 12).view(3, 4).clone()) for _ in range(2))
    optimiser = RowAdagrad(weight_decay=0.1).build([Group([ours], True)])
    oracle = torch.optim.Adagrad([theirs], lr=0.1, eps=1e-10, weight_decay=0.1)
    for factor in (1.0, -2.0, 0.5):
        for weight, one in ((ours, optimiser), (theirs, oracle)):
            one.zero_grad()
            (weight.exp() * factor).sum().backward()
            set_rate(one, 0.1) if one is optimiser else None
            one.step()
    torch.testing.assert_close(ours, theirs)


def test_gradients_of_shards_are_added_row_by_row_and_scaled() -> None:
    table = nn.Parameter(torch.randn(6, 3))
    optimiser = RowAdagrad().build([Group([table], True)])
    for ids in ([1, 4], [4, 2]):
        add_gradients([table], torch.autograd.grad(loss_of(table, ids, True), [table]))
    (values,) = gradients_of(optimiser)
    assert len(values) == 3, "rows 1, 2 and 4"
    scale_gradients([values], 2, 1.0, None)
    expected = sum(torch.autograd.grad(loss_of(table, ids, False), [table])[0] for ids in ([1, 4], [4, 2]))
    assert table.grad is not None
    torch.testing.assert_close(table.grad.to_dense(), expected / 2)


def test_an_optimiser_that_does_not_go_by_rows_gets_whole_tables() -> None:
    table = nn.Parameter(torch.randn(6, 3))
    optimiser = Adam().build([Group([table], True)])
    add_gradients([table], torch.autograd.grad(loss_of(table, [1, 4], True), [table]))
    (gradient,) = gradients_of(optimiser)
    assert gradient.shape == table.shape
    set_rate(optimiser, 0.1)
    optimiser.step()
