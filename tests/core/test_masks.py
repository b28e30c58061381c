"""Masks as literal matrices: 1 = may attend."""

import torch
from torch import Tensor

from regard.core import masks

POSITIONS = torch.arange(5)[None]


def matrix(*rows: str) -> Tensor:
    return torch.tensor([[cell == "1" for cell in row] for row in rows])


def test_padding_lets_every_query_see_every_real_token() -> None:
    real = matrix("11100", "11111", "10000")
    mask = masks.padding(real)
    assert mask.shape == (3, 1, 1, 5)
    for row in range(3):
        assert torch.equal(mask[row, 0, 0], real[row])


def test_causal_is_a_triangle() -> None:
    mask = masks.causal(POSITIONS, POSITIONS)
    assert torch.equal(
        mask[0, 0],
        matrix(
            "10000",
            "11000",
            "11100",
            "11110",
            "11111",
        ),
    )


def test_causal_of_later_queries_is_the_foot_of_the_triangle() -> None:
    mask = masks.causal(POSITIONS[:, 3:], POSITIONS)
    assert torch.equal(mask[0, 0], matrix("11110", "11111"))


def test_causal_of_each_row_follows_its_own_positions() -> None:
    mask = masks.causal(torch.tensor([[1, 2], [0, 1]]), torch.tensor([[0, 1, 2], [0, 0, 1]]))
    assert torch.equal(mask[0, 0], matrix("110", "111"))
    assert torch.equal(mask[1, 0], matrix("110", "111"))


def test_prefix_is_seen_by_all_and_the_rest_is_causal() -> None:
    mask = masks.prefix(POSITIONS, POSITIONS, torch.tensor([2, 0]))
    assert torch.equal(
        mask[0, 0],
        matrix(
            "11000",
            "11000",
            "11100",
            "11110",
            "11111",
        ),
    )
    assert torch.equal(mask[1, 0], masks.causal(POSITIONS, POSITIONS)[0, 0])


def test_window_is_a_band() -> None:
    assert torch.equal(
        masks.window(POSITIONS, POSITIONS, radius=1)[0, 0],
        matrix(
            "11000",
            "11100",
            "01110",
            "00111",
            "00011",
        ),
    )
    assert torch.equal(masks.window(POSITIONS, POSITIONS, radius=0)[0, 0], torch.eye(5).bool())


def test_masks_combine_by_and() -> None:
    real = matrix("11110", "01111")
    mask = (
        masks.causal(POSITIONS, POSITIONS)
        & masks.window(POSITIONS, POSITIONS, radius=2)
        & masks.padding(real)
    )
    assert torch.equal(
        mask[0, 0],
        matrix(
            "10000",
            "11000",
            "11100",
            "01110",
            "00110",
        ),
    )
    assert torch.equal(
        mask[1, 0],
        matrix(
            "00000",
            "01000",
            "01100",
            "01110",
            "00111",
        ),
    )


def test_both_takes_none_for_everything() -> None:
    left, right = masks.causal(POSITIONS, POSITIONS), masks.window(POSITIONS, POSITIONS, radius=1)
    assert masks.both(None, None) is None
    assert masks.both(left, None) is left
    assert masks.both(None, right) is right
    joined = masks.both(left, right)
    assert joined is not None
    assert torch.equal(joined, left & right)
