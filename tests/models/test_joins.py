"""How a sublayer meets its input: four ways, each written out."""

import pytest
import torch
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.tape import Tape
from regard.parts.norms import LayerNormSpec, layer_norm
from regard.stacks.join import HalvedSpec, Join, JoinSpec, PlainSpec, PostNormSpec, PreNormSpec
from tests.models.torch_nn import randomise

EPSILON = 0.1
NORM = LayerNormSpec(epsilon=EPSILON)
X = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.double)


def triple(x: Tensor) -> tuple[Tensor, str]:
    return 3 * x + 1, "a state"


def normed(join: Join, x: Tensor) -> Tensor:
    return layer_norm(x, join.norm.weight, join.norm.bias, EPSILON)


CASES = {
    "plain": (PlainSpec(), lambda join: 3 * X + 1),
    "post-norm": (PostNormSpec(norm=NORM), lambda join: normed(join, X + 3 * X + 1)),
    "pre-norm": (PreNormSpec(norm=NORM), lambda join: X + 3 * normed(join, X) + 1),
    "halved": (HalvedSpec(), lambda join: (X + 3 * X + 1) / 2**0.5),
}


@pytest.mark.parametrize(("spec", "formula"), CASES.values(), ids=CASES)
def test_join_is_its_formula(spec: JoinSpec, formula: object) -> None:
    join = spec.build(5, 5).double()
    randomise(join, seed=1)
    y, state = join(X, triple)
    torch.testing.assert_close(y, formula(join))
    assert state == "a state"


@pytest.mark.parametrize("name", [name for name in CASES if name != "plain"])
def test_a_residual_can_be_cut(name: str) -> None:
    join = CASES[name][0].build(5, 5).double()
    expected, _ = join(X, triple)
    with Tape(join, edits={"residual": torch.zeros_like}) as tape:
        cut, _ = join(X, triple)
    assert not torch.allclose(cut, expected)
    assert list(tape.records) == ["residual"]


def test_where_there_is_no_residual_none_can_be_cut() -> None:
    join = PlainSpec().build(5, 5).double()
    with pytest.raises(UsageError, match="residual"), Tape(join, edits={"residual": torch.zeros_like}):
        join(X, triple)


def test_halving_keeps_the_variance() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 1, 500, 40).unbind()
    joined, _ = HalvedSpec().build(40, 40)(x, lambda _: (y, None))
    assert joined.var().item() == pytest.approx(1, abs=0.03)
