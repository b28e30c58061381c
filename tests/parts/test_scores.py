"""Seven scores, each against its formula written out pair by pair."""

import math
from collections.abc import Callable

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from regard.core.errors import UsageError
from regard.parts.scores import (
    Additive,
    AdditiveSpec,
    ConcatSpec,
    Cosine,
    CosineSpec,
    DotSpec,
    General,
    GeneralSpec,
    Location,
    LocationSpec,
    ScaledSpec,
    Score,
    ScoreSpec,
)

BATCH, HEADS, QUERIES, KEYS, LONGEST = 2, 3, 5, 7, 11
Vector = list[float]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def times(x: Vector, weight: list[Vector]) -> Vector:
    """Row vector times matrix."""
    return [dot(x, [row[j] for row in weight]) for j in range(len(weight[0]))]


def plain_dot(score: Score, head: int, q: Vector, k: Vector, slot: int) -> float:
    return dot(q, k)


def plain_scaled(score: Score, head: int, q: Vector, k: Vector, slot: int) -> float:
    return dot(q, k) / math.sqrt(len(k))


def plain_general(score: Score, head: int, q: Vector, k: Vector, slot: int) -> float:
    """qᵀ W k."""
    assert isinstance(score, General)
    return dot(times(k, score.weight[head].tolist()), q)


def plain_additive(score: Score, head: int, q: Vector, k: Vector, slot: int) -> float:
    """vᵀ tanh(W₁ q + W₂ k)."""
    assert isinstance(score, Additive)
    of_query = times(q, score.query_weight[head].tolist())
    of_key = times(k, score.key_weight[head].tolist())
    return dot(score.vector[head].tolist(), [math.tanh(a + b) for a, b in zip(of_query, of_key, strict=True)])


def plain_concat(score: Score, head: int, q: Vector, k: Vector, slot: int) -> float:
    """vᵀ tanh(W [q; k])."""
    assert isinstance(score, Additive)
    weight = score.query_weight[head].tolist() + score.key_weight[head].tolist()
    return dot(score.vector[head].tolist(), [math.tanh(a) for a in times(q + k, weight)])


def plain_cosine(score: Score, head: int, q: Vector, k: Vector, slot: int) -> float:
    """β · q·k / (|q| |k|)."""
    assert isinstance(score, Cosine)
    sharpness = math.exp(score.log_sharpness[head].item())
    return sharpness * dot(q, k) / math.sqrt(dot(q, q) * dot(k, k))


def plain_location(score: Score, head: int, q: Vector, k: Vector, slot: int) -> float:
    """(W q) at the slot."""
    assert isinstance(score, Location)
    return times(q, score.weight[head].tolist())[slot]


Formula = Callable[[Score, int, Vector, Vector, int], float]
CASES: dict[str, tuple[ScoreSpec, Formula, int, int]] = {
    "dot": (DotSpec(), plain_dot, 5, 5),
    "scaled": (ScaledSpec(), plain_scaled, 5, 5),
    "general": (GeneralSpec(), plain_general, 5, 13),
    "additive": (AdditiveSpec(hidden=17), plain_additive, 5, 13),
    "additive of default width": (AdditiveSpec(), plain_additive, 5, 13),
    "concat": (ConcatSpec(hidden=17), plain_concat, 5, 13),
    "cosine": (CosineSpec(), plain_cosine, 5, 5),
    "location": (LocationSpec(longest=LONGEST), plain_location, 5, 13),
}


@pytest.mark.parametrize(("spec", "formula", "query_width", "key_width"), CASES.values(), ids=CASES)
def test_score_is_its_formula(spec: ScoreSpec, formula: Formula, query_width: int, key_width: int) -> None:
    torch.manual_seed(0)
    score = spec.build(query_width, key_width, HEADS).double()
    for parameter in score.parameters():
        parameter.data = torch.randn_like(parameter)
    query = torch.randn(BATCH, HEADS, QUERIES, query_width).double()
    keys = torch.randn(BATCH, HEADS, KEYS, key_width).double()
    got = score(query, score.prepare(keys))
    expected = torch.tensor(
        [
            [
                [
                    [
                        formula(score, h, query[b, h, q].tolist(), keys[b, h, k].tolist(), k)
                        for k in range(KEYS)
                    ]
                    for q in range(QUERIES)
                ]
                for h in range(HEADS)
            ]
            for b in range(BATCH)
        ],
        dtype=torch.double,
    )
    torch.testing.assert_close(got, expected)
    with torch.no_grad():  # where nobody learns, the same by a quicker formula
        torch.testing.assert_close(score(query, score.prepare(keys)), expected)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_one_query_after_another_is_the_same(name: str, heads: int) -> None:
    """With its gradients, of which those of the keys come from all times."""
    spec, _, query_width, key_width = CASES[name]
    torch.manual_seed(0)
    score = spec.build(query_width, key_width, heads).double()
    query = torch.randn(BATCH, heads, 1, query_width).double().requires_grad_()
    keys = torch.randn(BATCH, heads, KEYS, key_width).double().requires_grad_()
    taken = [query, keys, *score.parameters()]

    def gradients(repeatedly: bool) -> tuple[Tensor | None, ...]:
        prepared = score.prepare(keys)
        asked, cost = query, query.new_zeros(())
        scoring = score.repeatedly(prepared) if repeatedly else lambda query: score(query, prepared)
        for time in range(3):
            scores = scoring(asked)
            cost = cost + (time + 1) * scores.pow(2).sum()
            asked = asked + scores.mean(-1, keepdim=True).sin()
        return torch.autograd.grad(cost, taken, allow_unused=True)

    torch.testing.assert_close(gradients(True), gradients(False))


@pytest.mark.parametrize("heads", [1, 2])
def test_the_additive_score_has_the_gradient_of_its_formula(heads: int) -> None:
    torch.manual_seed(0)
    score = AdditiveSpec(hidden=4).build(3, 5, heads).double()
    assert isinstance(score, Additive)
    query = torch.randn(2, heads, 2, 3).double().requires_grad_()
    keys = torch.randn(2, heads, 3, 5).double().requires_grad_()

    def readable() -> Tensor:
        asked = torch.einsum("bhqw,hwa->bhqa", query, score.query_weight)
        known = torch.einsum("bhkw,hwa->bhka", keys, score.key_weight)
        return torch.einsum("bhqka,ha->bhqk", (asked[:, :, :, None] + known[:, :, None]).tanh(), score.vector)

    taken = [query, keys, *score.parameters()]
    found, expected = (
        torch.autograd.grad(scores.pow(3).sum(), taken)
        for scores in (score(query, score.prepare(keys)), readable())
    )
    torch.testing.assert_close(found, expected)


def test_all_seven_are_in_the_table() -> None:
    assert set(ScoreSpec.kinds) == {"dot", "scaled", "general", "concat", "additive", "cosine", "location"}


def test_additive_layer_is_as_wide_as_the_query_unless_told() -> None:
    assert AdditiveSpec().build(5, 13).vector.shape == (1, 5)
    assert AdditiveSpec(hidden=17).build(5, 13).vector.shape == (1, 17)


def test_only_products_declare_a_scale_and_only_location_knows_slots() -> None:
    built = {name: spec.build(width, key, HEADS) for name, (spec, _, width, key) in CASES.items()}
    assert {name: score.scale for name, score in built.items() if score.scale is not None} == {
        "dot": 1.0,
        "scaled": pytest.approx(5**-0.5),
    }
    assert [name for name, score in built.items() if score.by_slot] == ["location"]


@pytest.mark.parametrize("spec", [DotSpec(), ScaledSpec(), CosineSpec()])
def test_products_of_different_widths_are_refused_with_both(spec: ScoreSpec) -> None:
    with pytest.raises(UsageError, match="7 and 11"):
        spec.build(7, 11)


def test_location_refuses_more_slots_than_it_knows() -> None:
    score = LocationSpec(longest=3).build(5, 5)
    x: Tensor = torch.randn(1, 1, 4, 5)
    with pytest.raises(UsageError, match="knows 3 source positions, the input has 4"):
        score(x, score.prepare(x))


@pytest.mark.parametrize(("spec", "field"), [(AdditiveSpec, "hidden"), (LocationSpec, "longest")])
def test_sizes_that_cannot_be_are_refused(spec: type[ScoreSpec], field: str) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        spec(**{field: 0})
