"""Means over those around a place, by distance and as a product of matrices."""

import pytest
import torch

from regard.parts.around import by_place, mean_around, readable_mean_around


@pytest.mark.parametrize(("asked", "radius"), [(9, 2), (1, 3), (2, 4)], ids=["line", "one", "wide"])
def test_both_ways_agree_with_their_gradients(asked: int, radius: int) -> None:
    torch.manual_seed(0)
    line = torch.randn(asked + 2 * radius, 5, requires_grad=True)
    near = torch.rand(asked, 2 * radius + 1) < 0.5
    near[asked // 2] = False  # looks at nobody
    ours, theirs = mean_around(line, near), readable_mean_around(line, near)
    torch.testing.assert_close(ours, theirs)
    slope = torch.randn_like(ours)
    for mine, other in zip(
        torch.autograd.grad(ours, line, slope), torch.autograd.grad(theirs, line, slope), strict=True
    ):
        torch.testing.assert_close(mine, other)


def test_a_distance_is_a_place_beside() -> None:
    near = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(1)) < 0.5
    found = by_place(near)
    assert found.shape == (3, 4, 8)
    for group in range(3):
        for own in range(4):
            for place in range(8):
                within = 0 <= place - own < 5
                assert bool(found[group, own, place]) == (within and bool(near[group, own, place - own]))
