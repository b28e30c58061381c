"""Ensembles are step functions like any other."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import UsageError
from regard.search.beam import BeamSpec
from regard.search.step import Ensemble, Step, mean_log_probability, mean_probability
from tests.search.chains import Tree, markov


@pytest.mark.parametrize("combine", [mean_probability, mean_log_probability])
@given(seed=st.integers(0, 10_000), impossible=st.sampled_from([0.0, 0.4]))
def test_a_model_with_itself_is_the_model(combine, seed, impossible):
    tree = Tree(seed, 5, impossible)
    start, first = tree.start(range(3)), torch.tensor([1, 2, 3])
    search = BeamSpec(size=3, best=2).build()
    one = search(tree.step, start, first, 0, 7)
    both = search(Ensemble([tree.step, tree.step], [0.3, 1.1], combine), (start, start), first, 0, 7)
    assert [[h.tokens for h in some] for some in one] == [[h.tokens for h in some] for some in both]
    assert [some[0].log_prob for some in one] == pytest.approx([some[0].log_prob for some in both])


def test_each_model_keeps_its_own_state():
    """Two different trees: the mixed log-probability of a found answer, computed by hand from both."""
    trees = Tree(1, 5), Tree(2, 5)
    mixed = Ensemble([tree.step for tree in trees], [3.0, 1.0])
    states = tuple(tree.start([4]) for tree in trees)
    best = BeamSpec(size=4).build()(mixed, states, torch.tensor([2]), 0, 9)[0][0]
    whole = [*best.tokens, 0] if best.finished else best.tokens
    parts = zip(*(tree.log_probs(4, 2, whole) for tree in trees), strict=True)
    by_hand = [math.log(0.75 * math.exp(a) + 0.25 * math.exp(b)) for a, b in parts]
    assert best.token_log_probs == pytest.approx(by_hand)


def test_two_ways_to_combine():
    tables = [torch.tensor([[0.5, 0.5, 0.0]]).log(), torch.tensor([[0.1, 0.4, 0.5]]).log()]
    steps: list[Step] = [markov(table) for table in tables]
    sums, _ = Ensemble(steps)(torch.tensor([0]), (None, None))
    assert sums.exp()[0].tolist() == pytest.approx([0.3, 0.45, 0.25])
    products, _ = Ensemble(steps, combine=mean_log_probability)(torch.tensor([0]), (None, None))
    total = math.sqrt(0.05) + math.sqrt(0.2)
    assert products.exp()[0].tolist() == pytest.approx([math.sqrt(0.05) / total, math.sqrt(0.2) / total, 0.0])


def test_ensembles_that_cannot_be():
    step = markov(torch.zeros(3, 3))
    with pytest.raises(UsageError, match="2 models was given 1 weights"):
        Ensemble([step, step], [1.0])
    with pytest.raises(UsageError, match="positive"):
        Ensemble([step, step], [1.0, 0.0])
    with pytest.raises(UsageError, match=r"sizes \[3, 5\]"):
        Ensemble([step, markov(torch.zeros(5, 5))])(torch.tensor([0]), (None, None))
