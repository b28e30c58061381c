"""Poolings by hand; a huge number on padding shows that it is never read."""

import pytest
import torch

from regard.parts.pooling import EndsSpec, FirstSpec, LastSpec, MaxSpec, MeanSpec, PoolingSpec, SeveralSpec

GONE = 1e9
X = torch.tensor(
    [
        [[1.0, 2.0, 3.0, 4.0], [5.0, -6.0, 7.0, -8.0], [0.0, 1.0, 5.0, 1.0]],
        [[-1.0, -2.0, -3.0, -4.0], [-5.0, -1.0, -9.0, -2.0], [GONE] * 4],
        [[2.0, 4.0, 6.0, 8.0], [GONE] * 4, [GONE] * 4],
    ]
)
REAL = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
BY_HAND: dict[str, tuple[PoolingSpec, list[list[float]]]] = {
    "first": (FirstSpec(), [[1, 2, 3, 4], [-1, -2, -3, -4], [2, 4, 6, 8]]),
    "last": (LastSpec(), [[0, 1, 5, 1], [-5, -1, -9, -2], [2, 4, 6, 8]]),
    "ends": (EndsSpec(), [[0, 1, 3, 4], [-5, -1, -3, -4], [2, 4, 6, 8]]),
    "mean": (MeanSpec(), [[2, -1, 5, -1], [-3, -1.5, -6, -3], [2, 4, 6, 8]]),
    "max": (MaxSpec(), [[5, 2, 7, 4], [-1, -1, -3, -2], [2, 4, 6, 8]]),
    "several": (
        SeveralSpec(parts=(MaxSpec(), FirstSpec())),
        [[5, 2, 7, 4, 1, 2, 3, 4], [-1, -1, -3, -2, -1, -2, -3, -4], [2, 4, 6, 8, 2, 4, 6, 8]],
    ),
}


@pytest.mark.parametrize(("spec", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_pooling_by_hand(spec: PoolingSpec, expected: list[list[float]]) -> None:
    torch.testing.assert_close(spec.pool(X, REAL), torch.tensor(expected, dtype=torch.float))


def test_the_table_is_complete() -> None:
    assert {name: spec.kind() for name, (spec, _) in BY_HAND.items()} == {
        name: name for name in PoolingSpec.kinds
    }


@pytest.mark.parametrize("spec", [spec for spec, _ in BY_HAND.values()], ids=BY_HAND)
def test_a_row_of_nothing_is_finite(spec: PoolingSpec) -> None:
    assert spec.pool(torch.zeros(1, 2, 4), torch.zeros(1, 2).bool()).isfinite().all()
