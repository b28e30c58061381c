import numpy as np
import pytest

from regard.core.errors import UsageError
from regard.inspection.alignment import alignment, rollout
from regard.inspection.trace import Attention, Trace

from . import small


def _encoder(layer: int, heads: list[list[list[float]]]) -> Attention:
    names = ("a", "b")
    return Attention("n", "encoder", layer, 0, "itself", names, names, np.array(heads, np.float32))


def test_rollout_by_hand() -> None:
    # Means of heads: [[1, 0], [1/2, 1/2]] and [[0, 1], [0, 1]]; with half the identity,
    # A₁ = [[1, 0], [1/4, 3/4]] and A₂ = [[1/2, 1/2], [0, 1]]; A₂A₁ = [[5/8, 3/8], [1/4, 3/4]].
    first = _encoder(0, [[[1, 0], [0, 1]], [[1, 0], [1, 0]]])
    second = _encoder(1, [[[0, 1], [0, 1]]])
    trace = Trace(("a", "b"), (), True, (0.0,), (first, second))
    flowed = rollout(trace)
    assert flowed is not None
    np.testing.assert_allclose(flowed, [[5 / 8, 3 / 8], [1 / 4, 3 / 4]], atol=1e-7)


def test_rollout_of_a_model_is_a_distribution_over_tokens() -> None:
    trace = small.trace_of(small.transformer(layers=3))
    for part in ("encoder", "decoder"):
        flowed = rollout(trace, part)
        assert flowed is not None
        np.testing.assert_allclose(flowed.sum(-1), 1.0, atol=1e-6)
    assert flowed is not None
    assert not np.triu(flowed, k=1).any()
    assert rollout(small.trace_of(small.looking_first())) is None


def test_the_alignment_is_the_mean_over_heads_of_the_last_layer_but_one() -> None:
    trace = small.trace_of(small.transformer(layers=3))
    by_layer = {seen.layer: seen.weights for seen in trace.looking_at("memory", "decoder")}
    found = alignment(trace)
    assert found is not None
    assert found.shape == (len(trace.predictions), len(trace.source))
    np.testing.assert_allclose(found, by_layer[1].mean(0), atol=1e-7)
    last = alignment(trace, layer=2)
    assert last is not None
    np.testing.assert_allclose(last, by_layer[2].mean(0), atol=1e-7)
    assert np.abs(found - last).max() > 1e-3


def test_one_attention_is_its_own_alignment() -> None:
    trace = small.trace_of(small.looking_first())
    found = alignment(trace)
    assert found is not None
    np.testing.assert_array_equal(found, trace.attentions[0].weights[0])


def test_no_alignment_where_nothing_looks() -> None:
    assert alignment(small.trace_of(small.bottleneck())) is None
    with pytest.raises(UsageError, match=r"layer 5 does not look at the source \(layers that do: 0, 1\)"):
        alignment(small.trace_of(small.transformer()), layer=5)
