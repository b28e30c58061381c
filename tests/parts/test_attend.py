"""The one attention: worked numbers, a plain loop, and two paths that agree."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.parts.attend import attend, masked_softmax
from regard.parts.scores import DotSpec, ScaledSpec, Score

BATCH, HEADS, QUERIES, KEYS, WIDTH, VALUE = 2, 3, 5, 7, 11, 13


def look(name: str, value: Tensor) -> Tensor:
    """A watcher: asks for the readable path and changes nothing."""
    return value


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def parts(value: int = VALUE) -> tuple[Tensor, Tensor, Tensor]:
    return (
        random(BATCH, HEADS, QUERIES, WIDTH, seed=1),
        random(BATCH, HEADS, KEYS, WIDTH, seed=2),
        random(BATCH, HEADS, KEYS, value, seed=3),
    )


def scaled() -> Score:
    return ScaledSpec().build(WIDTH, WIDTH)


def by_loop(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    """softmax(q·k/√d + bias) over what may be seen, pair by pair."""
    out = torch.zeros(*query.shape[:3], values.shape[-1], dtype=torch.double)
    for b in range(query.shape[0]):
        for h in range(query.shape[1]):
            for q in range(query.shape[2]):
                exponentials = {}
                for k in (k for k in range(keys.shape[2]) if mask[b, h, q, k]):
                    products = (a * c for a, c in zip(query[b, h, q], keys[b, h, k], strict=True))
                    score = float(sum(products)) / math.sqrt(query.shape[-1])
                    exponentials[k] = math.exp(score + float(bias[b, h, q, k]))
                for k, exponential in exponentials.items():
                    out[b, h, q] += exponential / sum(exponentials.values()) * values[b, h, k]
    return out


@pytest.mark.parametrize("watch", [None, look], ids=["fused", "readable"])
def test_the_lectures_numbers_come_out(watch: object) -> None:
    """Scores 112 and 96 with d_k = 64 become 14 and 12, and weights 0.88 and 0.12."""
    query = torch.zeros(1, 1, 1, 64, dtype=torch.double)
    keys = torch.zeros(1, 1, 2, 64, dtype=torch.double)
    query[..., :2] = torch.tensor([4.0, 8.0])
    keys[0, 0, :, :2] = torch.tensor([[10.0, 9.0], [8.0, 8.0]])
    assert (query @ keys.transpose(-1, -2)).flatten().tolist() == [112, 96]
    weights = attend(query, keys, torch.eye(2).double()[None, None], ScaledSpec().build(64, 64), watch=watch)
    assert [round(weight, 2) for weight in weights.flatten().tolist()] == [0.88, 0.12]


def test_the_watcher_sees_scaled_scores_then_weights() -> None:
    seen: dict[str, Tensor] = {}

    def keep(name: str, value: Tensor) -> Tensor:
        seen[name] = value
        return value

    query, keys = torch.full((1, 1, 1, 64), 1.0), torch.full((1, 1, 2, 64), 1.75)
    keys[0, 0, 1] = 1.5
    attend(query, keys, torch.eye(2)[None, None], ScaledSpec().build(64, 64), watch=keep)
    assert list(seen) == ["scores", "weights"]
    assert seen["scores"].flatten().tolist() == [14, 12]
    assert [round(weight, 2) for weight in seen["weights"].flatten().tolist()] == [0.88, 0.12]


def test_a_watcher_may_replace_scores_and_weights() -> None:
    query, keys, values = parts()
    uniform = attend(query, keys, values, scaled(), watch=lambda n, x: x * 0 if n == "scores" else x)
    torch.testing.assert_close(uniform, values.mean(2, keepdim=True).expand_as(uniform))
    nothing = attend(query, keys, values, scaled(), watch=lambda n, x: x * 0 if n == "weights" else x)
    assert not nothing.any()


broadcast = st.tuples(*(st.sampled_from([1, full]) for full in (BATCH, HEADS, QUERIES, KEYS)))


@given(mask_shape=st.none() | broadcast, bias_shape=st.none() | broadcast, seed=st.integers(0, 99))
def test_readable_path_fused_path_and_plain_loop_agree(
    mask_shape: tuple[int, ...] | None, bias_shape: tuple[int, ...] | None, seed: int
) -> None:
    query, keys, values = parts()
    full = (BATCH, HEADS, QUERIES, KEYS)
    mask = None if mask_shape is None else random(*mask_shape, seed=seed) > 0
    bias = None if bias_shape is None else random(*bias_shape, seed=seed + 1)
    fused = attend(query, keys, values, scaled(), mask, bias)
    readable = attend(query, keys, values, scaled(), mask, bias, watch=look)
    torch.testing.assert_close(fused, readable, rtol=1e-10, atol=1e-12)
    expected = by_loop(
        query,
        keys,
        values,
        torch.ones(full).bool() if mask is None else mask.expand(full),
        torch.zeros(full) if bias is None else bias.expand(full),
    )
    torch.testing.assert_close(readable, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
@pytest.mark.parametrize("bias", [None, torch.tensor(0.5).expand(1, HEADS, 1, 1)])
@pytest.mark.parametrize("watch", [None, look], ids=["fused", "readable"])
def test_a_query_that_may_look_at_nothing_gets_zeros(
    dtype: torch.dtype, bias: Tensor | None, watch: object
) -> None:
    """Zeros forwards, zero gradient backwards: a fully padded memory must not spread NaN."""
    query, keys, values = (part.to(dtype).requires_grad_() for part in parts())
    mask = torch.ones(BATCH, 1, QUERIES, KEYS).bool()
    mask[1, 0, 2] = False
    given_bias = None if bias is None else bias.to(dtype)
    out = attend(query, keys, values, scaled(), mask, given_bias, watch=watch)
    assert (out[1, :, 2] == 0).all()
    assert (out[0, :, 2] != 0).all()
    out.square().sum().backward()
    for part in (query, keys, values):
        assert part.grad is not None
        assert part.grad.isfinite().all()
    assert query.grad is not None
    assert (query.grad[1, :, 2] == 0).all()


def test_masked_softmax_is_exactly_zero_where_masked() -> None:
    scores = torch.tensor([[[[1.0, 1e4, -1e4, 1.0]]]])
    mask = torch.tensor([[[[True, False, True, True]]]])
    torch.testing.assert_close(masked_softmax(scores, mask), torch.tensor([[[[0.5, 0.0, 0.0, 0.5]]]]))
    assert (masked_softmax(scores, torch.zeros(1, 1, 1, 4).bool()) == 0).all()
    assert torch.equal(masked_softmax(scores, None), scores.softmax(-1))
    # However bad the scores that remain, they share everything.
    low, some = torch.full((1, 1, 1, 4), -1e30), torch.tensor([[[[True, False, False, True]]]])
    torch.testing.assert_close(masked_softmax(low, some), torch.tensor([[[[0.5, 0.0, 0.0, 0.5]]]]))


@pytest.mark.parametrize("watch", [None, look], ids=["fused", "readable"])
def test_dropout_takes_weights_away_and_doubles_the_rest(watch: object) -> None:
    torch.manual_seed(0)
    query, keys, _ = parts()
    values = torch.eye(KEYS).double().expand(BATCH, HEADS, KEYS, KEYS)
    weights = attend(query, keys, values, scaled(), watch=look)
    dropped = attend(query, keys, values, scaled(), dropout=0.5, watch=watch)
    gone = dropped == 0
    torch.testing.assert_close(dropped, (2 * weights).masked_fill(gone, 0))
    assert 0.3 < gone.double().mean() < 0.7


def test_an_unscaled_dot_product_is_not_scaled_on_either_path() -> None:
    query, keys, values = parts()
    expected = (query @ keys.transpose(-1, -2)).softmax(-1) @ values
    score = DotSpec().build(WIDTH, WIDTH)
    torch.testing.assert_close(attend(query, keys, values, score), expected)
    torch.testing.assert_close(attend(query, keys, values, score, watch=look), expected)


@pytest.mark.parametrize("keys", [1, 7, 48, 49], ids=lambda count: f"{count}keys")
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("masked", ["nothing", "some", "a_blind_query"])
def test_learning_takes_the_same_gradients_on_every_path(keys: int, biased: bool, masked: str) -> None:
    tensors = [
        random(BATCH, HEADS, count, width, seed=seed).requires_grad_()
        for seed, (count, width) in enumerate(((QUERIES, WIDTH), (keys, WIDTH), (keys, VALUE)))
    ]
    bias = random(1, HEADS, QUERIES, keys, seed=8) if biased else None
    mask = None
    if masked != "nothing":
        mask = random(BATCH, 1, QUERIES, keys, seed=9) > -0.3
        mask[..., 0] = True
        if masked == "a_blind_query":
            mask[1, 0, 2] = False
    slope = random(BATCH, HEADS, QUERIES, VALUE, seed=10)
    found, expected = (attend(*tensors, scaled(), mask, bias, watch=watch) for watch in (None, look))
    torch.testing.assert_close(found, expected)
    gradients = (torch.autograd.grad(output, tensors, slope) for output in (found, expected))
    torch.testing.assert_close(next(gradients), next(gradients))


def test_short_sequences_learn_batched_and_long_ones_fused() -> None:
    def taken(keys: int) -> str:
        tensors = [random(1, 1, count, WIDTH).requires_grad_() for count in (3, keys, keys)]
        return type(attend(*tensors, scaled()).grad_fn).__name__

    assert "Batched" in taken(48)
    assert "ScaledDotProduct" in taken(49)


@pytest.mark.parametrize(
    "shape", [(1, HEADS, QUERIES, KEYS), (BATCH, 1, QUERIES, KEYS), (BATCH, HEADS, 1, KEYS)]
)
@pytest.mark.parametrize("masked", [False, True])
def test_a_learned_bias_gets_its_gradient(shape: tuple[int, ...], masked: bool) -> None:
    tensors = [part.requires_grad_() for part in parts()]
    bias = random(*shape, seed=8).requires_grad_()
    mask = random(BATCH, 1, QUERIES, KEYS, seed=9) > -0.5 if masked else None
    aim = random(BATCH, HEADS, QUERIES, VALUE, seed=10)
    slopes = [
        torch.autograd.grad((attend(*tensors, scaled(), mask, bias, watch=w) * aim).sum(), bias)[0]
        for w in (None, look)
    ]
    torch.testing.assert_close(*slopes)
    assert slopes[0].abs().max() > 0.01


def test_where_a_bias_is_learned_long_sequences_are_batched_too() -> None:
    tensors = [random(1, 1, count, WIDTH).requires_grad_() for count in (3, 60, 60)]
    found = attend(*tensors, scaled(), bias=random(1, 1, 3, 60).requires_grad_())
    assert "Batched" in type(found.grad_fn).__name__
