"""Positions: the formula's own numbers, and each scheme against another way to compute it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.core.errors import UsageError
from regard.parts.positions import (
    Buckets,
    BucketsSpec,
    Distance,
    DistanceSpec,
    LearnedSpec,
    NoPairPositionSpec,
    NoPositionSpec,
    Relative,
    RelativeSpec,
    Rotary,
    RotarySpec,
    Sinusoidal,
    SinusoidalSpec,
)


def sinusoids(count: int, width: int) -> Tensor:
    built = SinusoidalSpec().build(width)
    assert built is not None
    table: Tensor = built.double()(torch.arange(count)[None])[0]
    return table


# ---------------------------------------------------------------- added to the input


def test_sinusoids_of_five_positions_and_four_coordinates() -> None:
    """The matrix that the formula gives (a printed table in circulation has another third column)."""
    table = sinusoids(5, 4)
    rounded = [[round(float(cell), 4) for cell in column] for column in table.T]
    assert rounded[0] == [round(math.sin(position), 4) for position in range(5)]
    assert rounded[1] == [round(math.cos(position), 4) for position in range(5)]
    assert rounded[2] == [0.0, 0.0100, 0.0200, 0.0300, 0.0400]
    assert rounded[3] == [1.0, 1.0000, 0.9998, 0.9996, 0.9992]


def test_similarity_of_positions_falls_from_two() -> None:
    table = sinusoids(5, 4)
    similar = table @ table.T
    assert [round(float(cell), 4) for cell in similar[0]] == [2, 1.5403, 0.5837, 0.0096, 0.3456]
    torch.testing.assert_close(similar.diagonal(), torch.full((5,), 2.0).double())


@pytest.mark.parametrize("width", [2, 6, 7])
def test_sinusoids_are_the_formula_for_every_width(width: int) -> None:
    table = sinusoids(13, width)
    assert table.shape == (13, width)
    for position in range(13):
        for i in range(width):
            angle = position / 10_000 ** ((i - i % 2) / width)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert float(table[position, i]) == pytest.approx(expected, abs=1e-5)


def test_sinusoids_follow_the_positions_they_are_given() -> None:
    built = SinusoidalSpec().build(6)
    assert built is not None
    table = sinusoids(13, 6)
    asked = torch.tensor([[3, 3, 0], [12, 1, 2]])
    assert torch.equal(built.double()(asked), table[asked])
    assert built.longest is None


def test_learned_positions_are_rows_of_a_table_and_end() -> None:
    built = LearnedSpec(longest=5).build(7)
    assert built is not None
    asked = torch.tensor([[4, 0, 0], [1, 2, 3]])
    assert torch.equal(built(asked), built.table.weight[asked])
    assert built.longest == 5
    with pytest.raises(UsageError, match="an input of 6 tokens, but this model has learned 5 positions"):
        built(torch.tensor([[0, 5]]))
    assert built(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0, 7)


def test_no_positions_are_nothing() -> None:
    assert NoPositionSpec().build(7) is None
    nothing, x = NoPairPositionSpec().build(2, 3), torch.randn(1, 2, 5, 3)
    where = torch.arange(5)[None]
    assert nothing.turn(x, where) is x
    assert nothing.bias(x, where, where) is None


# ---------------------------------------------------------------- felt inside attention


def rotary(width: int, base: float = 10_000.0) -> Rotary:
    built = RotarySpec(base=base).build(3, width).double()
    assert isinstance(built, Rotary)
    return built


def test_rotary_is_multiplication_by_a_complex_number() -> None:
    width, base = 10, 50.0
    x = torch.randn(2, 3, 5, width, dtype=torch.double)
    position = torch.tensor([[0, 1, 2, 3, 4], [9, 7, 7, 100, 0]])
    turned = rotary(width, base).turn(x, position)
    for b in range(2):
        for t in range(5):
            for pair in range(width // 2):
                angle = int(position[b, t]) * base ** (-2 * pair / width)
                turn = complex(math.cos(angle), math.sin(angle))
                for h in range(3):
                    before = complex(float(x[b, h, t, 2 * pair]), float(x[b, h, t, 2 * pair + 1]))
                    after = complex(float(turned[b, h, t, 2 * pair]), float(turned[b, h, t, 2 * pair + 1]))
                    assert after == pytest.approx(before * turn, abs=1e-4)


@given(query=st.integers(0, 500), key=st.integers(0, 500), shift=st.integers(0, 500), seed=st.integers(0, 9))
def test_rotary_scores_depend_on_the_distance_only(query: int, key: int, shift: int, seed: int) -> None:
    part = rotary(8)
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, 3, 1, 8, generator=generator, dtype=torch.double)

    def score(at: int, other: int) -> Tensor:
        return (part.turn(q, torch.tensor([[at]])) * part.turn(k, torch.tensor([[other]]))).sum(-1)

    torch.testing.assert_close(score(query, key), score(query + shift, key + shift), rtol=1e-8, atol=1e-9)
    assert query == key or not torch.allclose(score(query, key), score(query, query))


def test_rotary_keeps_lengths_and_the_first_place() -> None:
    part, x, where = rotary(8), torch.randn(2, 3, 5, 8, dtype=torch.double), torch.arange(5).expand(2, 5)
    turned = part.turn(x, where)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(turned[:, :, 0], x[:, :, 0])
    assert part.bias(x, where, where) is None


def test_rotary_refuses_an_odd_head() -> None:
    with pytest.raises(UsageError, match="width 7 is odd"):
        RotarySpec().build(3, 7)


def test_relative_bias_is_the_query_times_the_vector_of_the_clipped_distance() -> None:
    """Shaw et al. 2018, equation 4: e_ij = x_i W_Q (a_ij)ᵀ / √d, a_ij by distance clipped to ±k."""
    farthest, width = 2, 5
    part = RelativeSpec(farthest=farthest).build(3, width).double()
    assert isinstance(part, Relative)
    query = torch.randn(2, 3, 4, width, dtype=torch.double)
    query_position = torch.tensor([[3, 4, 5, 6], [1, 2, 3, 3]])
    key_position = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 2, 3, 3]])
    bias = part.bias(query, query_position, key_position)
    assert bias is not None
    vectors = {distance: part.table[distance + farthest] for distance in (-2, -1, 0, 1, 2)}
    for b in range(2):
        for h in range(3):
            for q in range(4):
                for k in range(7):
                    distance = int(key_position[b, k] - query_position[b, q])
                    vector = vectors[max(-2, min(2, distance))]
                    expected = (query[b, h, q] @ vector).item() / math.sqrt(width)
                    assert bias[b, h, q, k].item() == pytest.approx(expected)


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (16, 9)])
def test_buckets_are_those_of_t5(two_sided: bool, buckets: int, farthest: int) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    part = BucketsSpec(buckets=buckets, farthest=farthest, two_sided=two_sided).build(3, 5)
    assert isinstance(part, Buckets)
    distance = torch.arange(-300, 301)
    expected = T5Attention._relative_position_bucket(
        distance, bidirectional=two_sided, num_buckets=buckets, max_distance=farthest
    )
    assert torch.equal(part.bucket(distance), expected)
    assert int(expected.max()) == buckets - 1


def test_bucket_bias_looks_up_each_heads_number_for_each_pair() -> None:
    part = BucketsSpec(buckets=8, farthest=6).build(3, 5)
    assert isinstance(part, Buckets)
    query_position, key_position = torch.tensor([[2, 3], [0, 7]]), torch.tensor([[0, 1, 2, 3], [0, 1, 7, 9]])
    bias = part.bias(torch.zeros(2, 3, 2, 5), query_position, key_position)
    assert bias is not None
    for b in range(2):
        for q in range(2):
            for k in range(4):
                bucket = part.bucket(key_position[b, k] - query_position[b, q])
                assert torch.equal(bias[b, :, q, k], part.table.weight[bucket])


@pytest.mark.parametrize(("two_sided", "exact"), [(True, 8), (False, 16)])
def test_buckets_refuse_a_far_end_that_is_near(two_sided: bool, exact: int) -> None:
    """Beyond the exact distances the rest is logarithmic: there must be a rest."""
    with pytest.raises(UsageError, match=f"first {exact} distances.*got {exact}"):
        BucketsSpec(farthest=exact, two_sided=two_sided).build(3, 5)
    BucketsSpec(farthest=exact + 1, two_sided=two_sided).build(3, 5)


def test_distance_is_what_dai_et_al_write() -> None:
    """(q+u)ᵀk + (q+v)ᵀ W r_{i−j}, entry by entry."""
    torch.manual_seed(1)
    heads, width, time = 2, 6, 5
    positions = DistanceSpec().build(heads, width).double()
    assert isinstance(positions, Distance)
    for parameter in positions.parameters():
        torch.nn.init.normal_(parameter)
    query, keys = torch.randn(1, heads, time, width).double(), torch.randn(1, heads, time, width).double()
    place = torch.arange(time)[None]
    asked = positions.ask(query)
    bias = positions.bias(asked, place, place)
    assert bias is not None
    scores = asked @ keys.mT * width**-0.5 + bias
    u, v = positions.content[:, 0], positions.place[:, 0] + positions.content[:, 0]
    waves = Sinusoidal(heads * width).double()
    for head in range(heads):
        rows = slice(head * width, (head + 1) * width)
        for i in range(time):
            for j in range(time):
                r = positions.project.weight[rows] @ waves(torch.tensor([[i - j]]))[0, 0]
                q, k = query[0, head, i], keys[0, head, j]
                expected = ((q + u[head]) @ k + (q + v[head]) @ r) * width**-0.5
                torch.testing.assert_close(scores[0, head, i, j], expected)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 6), (2, 2), (4, 4), (3, 9), (5, 2)])
def test_distances_of_one_stretch_are_read_off_and_equal_those_looked_up(queries: int, keys: int) -> None:
    """The same rows beside one with a gap, for which every pair is looked up."""
    torch.manual_seed(2)
    positions = DistanceSpec().build(2, 4).double()
    query = torch.randn(3, 2, queries, 4).double().requires_grad_()
    key_place = torch.tensor([[0], [7], [3]]) + torch.arange(keys)
    query_place = torch.tensor([[2], [9], [5]]) + torch.arange(queries)
    torn = query_place.clone()
    torn[2, 0] -= 1
    read, looked_up = (positions.bias(query, place, key_place) for place in (query_place, torn))
    assert read is not None
    assert looked_up is not None
    torch.testing.assert_close(read[:2], looked_up[:2])
    torch.testing.assert_close(read[2, :, 1:], looked_up[2, :, 1:])
    aim = torch.randn_like(read[:2])
    slopes = [torch.autograd.grad((found[:2] * aim).sum(), query)[0] for found in (read, looked_up)]
    torch.testing.assert_close(*slopes)
