"""One map over the tree, whatever the tree is made of."""

from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.core.state import (
    concatenate_rows,
    detach,
    map_tensors,
    repeat_rows,
    select_hypotheses,
    select_rows,
)


class Pair(NamedTuple):
    left: Tensor
    right: Any


def tree(batch: int = 3, shift: float = 0.0) -> Any:
    """Every form a state may take, one inside another."""
    rows = torch.arange(batch)[:, None] + shift
    return Pair(
        rows.expand(batch, 2),
        {
            "tuple": (rows * 10, None, [rows * 100]),
            "pair": Pair((rows * 1000)[:, None], ()),
        },
    )


def leaves(state: Any) -> list[Tensor]:
    found: list[Tensor] = []
    map_tensors(lambda tensor: found.append(tensor) or tensor, state)
    return found


def test_map_keeps_the_form_and_touches_every_tensor() -> None:
    state = tree()
    mapped = map_tensors(lambda tensor: tensor + 1, state)
    assert type(mapped) is Pair
    assert type(mapped.right) is dict
    assert list(mapped.right) == ["tuple", "pair"]
    assert [type(part) for part in mapped.right["tuple"]] == [Tensor, type(None), list]
    assert type(mapped.right["pair"]) is Pair
    assert mapped.right["pair"].right == ()
    assert len(leaves(state)) == 4
    for before, after in zip(leaves(state), leaves(mapped), strict=True):
        assert torch.equal(after, before + 1)


@given(rows=st.lists(st.integers(0, 2), max_size=5))
def test_select_reorders_repeats_and_drops(rows: list[int]) -> None:
    state, selected = tree(), select_rows(tree(), torch.tensor(rows, dtype=torch.long))
    for before, after in zip(leaves(state), leaves(selected), strict=True):
        assert after.shape == (len(rows), *before.shape[1:])
        for place, row in enumerate(rows):
            assert torch.equal(after[place], before[row])


def test_repeat_puts_copies_side_by_side() -> None:
    state = tree(2)
    for before, after in zip(leaves(state), leaves(repeat_rows(state, 3)), strict=True):
        assert torch.equal(after, torch.stack([before[row] for row in (0, 0, 0, 1, 1, 1)]))


def test_concatenate_is_the_inverse_of_select() -> None:
    state = tree(5)
    parts = [select_rows(state, torch.tensor(rows)) for rows in ([0, 1], [2], [3, 4])]
    joined = concatenate_rows(parts)
    assert type(joined) is Pair
    assert type(joined.right["pair"]) is Pair
    assert joined.right["tuple"][1] is None
    for before, after in zip(leaves(state), leaves(joined), strict=True):
        assert torch.equal(before, after)


def test_concatenate_refuses_states_of_different_form() -> None:
    with pytest.raises(ValueError, match="shorter"):
        concatenate_rows([(torch.ones(1), torch.ones(1)), (torch.ones(1),)])


def test_detach_cuts_the_graph_and_keeps_values() -> None:
    weight = torch.tensor(2.0, requires_grad=True)
    state = map_tensors(lambda tensor: tensor * weight, tree())
    cut = detach(state)
    for before, after in zip(leaves(state), leaves(cut), strict=True):
        assert before.requires_grad
        assert not after.requires_grad
        assert torch.equal(before, after)


class Sharing(NamedTuple):
    own: Any
    memory: Tensor

    @property
    def of_memory(self) -> tuple[str, ...]:
        return ("memory",)


def test_hypotheses_follow_rows_and_their_memory_follows_sentences() -> None:
    state = {"one": (Sharing(tree(6), torch.tensor([[0], [10], [20]])), None)}
    rows = torch.tensor([1, 1, 4, 5])
    got = select_hypotheses(state, rows, torch.tensor([0, 2]))["one"][0]
    for one, other in zip(leaves(got.own), leaves(select_rows(tree(6), rows)), strict=True):
        assert torch.equal(one, other)
    assert got.memory.tolist() == [[0], [20]]
    kept = select_hypotheses(state, rows)["one"][0].memory
    assert kept is state["one"][0].memory
