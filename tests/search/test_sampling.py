"""Samples follow the probabilities, and depend on nothing but the seed, the sentence and the model."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.search.greedy import GreedySpec
from regard.search.sampling import SamplingSpec, draw
from tests.search.chains import Tree, markov

END = 0
seeds = st.integers(0, 10_000)
TABLE = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [1.0, 0.0, 0.0, 0.0], [0.7, 0.1, 0.2, 0.0]])


def sample_firsts(many: int, **settings) -> Counter[int]:
    """First tokens of many samples from row 0 of the table; the end is one of them."""
    search = SamplingSpec(best=many, **settings).build()
    found = search(markov(TABLE.log()), None, torch.tensor([0]), END, 1)[0]
    return Counter(END if one.finished else one.tokens[0] for one in found)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0.1, 0.2, 0.3, 0.4]),
        ({"temperature": 0.5}, [1 / 30, 4 / 30, 9 / 30, 16 / 30]),
        ({"top_k": 2}, [0.0, 0.0, 3 / 7, 4 / 7]),
        ({"top_p": 0.65}, [0.0, 0.0, 3 / 7, 4 / 7]),
        ({"top_p": 0.75}, [0.0, 2 / 9, 3 / 9, 4 / 9]),
        ({"top_k": 3, "top_p": 0.7}, [0.0, 0.0, 3 / 7, 4 / 7]),
        ({"top_p": 1.0}, [0.1, 0.2, 0.3, 0.4]),
    ],
    ids=str,
)
def test_frequencies_are_the_probabilities(settings, expected):
    """4,000 draws: the standard deviation of a share is below 0.008."""
    counts = sample_firsts(4000, **settings)
    assert [counts[token] / 4000 for token in range(4)] == pytest.approx(expected, abs=0.035)
    assert set(counts) == {token for token, share in enumerate(expected) if share}


def test_whole_answers_have_their_probabilities():
    """Of all answers from 0: P([3]) = 0.4 · 0.7 and P([2]) = 0.3 · 1."""
    found = SamplingSpec(best=4000, seed=5).build()(markov(TABLE.log()), None, torch.tensor([0]), END, 9)[0]
    counts = Counter(tuple(one.tokens) for one in found)
    assert counts[(3,)] / 4000 == pytest.approx(0.28, abs=0.035)
    assert counts[(2,)] / 4000 == pytest.approx(0.30, abs=0.035)


@given(seed=seeds, impossible=st.sampled_from([0.0, 0.4]))
def test_near_temperature_zero_it_is_greedy(seed, impossible):
    tree = Tree(seed, 7, impossible)
    given_ = (tree.step, tree.start(range(5)), torch.tensor([1, 2, 3, 4, 5]), END, 11)
    assert SamplingSpec(temperature=1e-9, seed=seed).build()(*given_) == GreedySpec().build()(*given_)


@given(seed=seeds, order=st.permutations(range(5)), top_p=st.sampled_from([None, 0.8]))
def test_batch_mates_do_not_matter(seed, order, top_p):
    tree = Tree(seed, 7)
    first, longest = torch.tensor([1, 2, 3, 4, 5]), torch.tensor([9, 3, 11, 7, 5])
    search = SamplingSpec(seed=seed, best=3, top_p=top_p).build()
    together = search(tree.step, tree.start(range(5)), first, END, longest)
    shuffled = search(tree.step, tree.start(order), first[order], END, longest[order], numbers=order)
    assert shuffled == [together[i] for i in order]
    for i in range(5):
        alone = search(tree.step, tree.start([i]), first[i : i + 1], END, longest[i : i + 1], numbers=[i])
        assert alone == [together[i]]


def test_seeds_sentences_and_copies_differ():
    tree, first = Tree(3, 11, sharp=0.1), torch.tensor([1])

    def sample(seed: int, number: int, best: int = 1) -> list[list[int]]:
        search = SamplingSpec(seed=seed, best=best).build()
        return [one.tokens for one in search(tree.step, tree.start([0]), first, END, 13, numbers=[number])[0]]

    assert sample(1, 1) == sample(1, 1)
    assert sample(1, 1) != sample(2, 1)
    assert sample(1, 1) != sample(1, 2)
    three = sample(1, 1, best=3)
    assert len({tuple(tokens) for tokens in three}) == 3
    assert sample(1, 1)[0] in three


@given(seed=seeds, many=st.integers(1, 4))
def test_samples_report_the_models_own_probabilities(seed, many):
    tree = Tree(seed, 5)
    found = SamplingSpec(best=many, temperature=2.0, top_k=3, seed=seed).build()(
        tree.step, tree.start(range(3)), torch.tensor([1, 2, 3]), END, 7
    )
    for sentence, some in enumerate(found):
        assert len(some) == many
        for one in some:
            whole = [*one.tokens, END] if one.finished else one.tokens
            assert one.token_log_probs == pytest.approx(tree.log_probs(sentence, sentence + 1, whole))
            assert one.score == pytest.approx(one.log_prob / len(whole))


def test_the_first_step_is_shared_and_finished_samples_leave():
    tree = Tree(8, 3)
    found = SamplingSpec(best=5).build()(tree.step, tree.start(range(2)), torch.tensor([1, 2]), END, 40)
    lengths = [len(one.token_log_probs) for some in found for one in some]
    assert tree.rows == [2] + [sum(length > t for length in lengths) for t in range(1, max(lengths))]


def test_a_wide_nucleus_is_found_in_pieces():
    """Flat over 307 tokens, more than the first look covers; twenty less likely ones are outside."""
    probabilities = torch.full((1, 307), 1.0)
    probabilities[0, 70:90] = 0.5
    log_probs = (probabilities / probabilities.sum()).log()
    share = float(287 / probabilities.sum()) - 1e-4
    chances = torch.linspace(0, 1 - 1e-9, 1201, dtype=torch.float64)
    drawn = draw(log_probs.expand(1201, -1), chances, top_p=share)
    assert set(drawn.tolist()) == set(range(307)) - set(range(70, 90))


def test_impossible_tokens_are_never_drawn():
    log_probs = torch.tensor([[float("-inf"), 0.3, 0.7, float("-inf")]])
    log_probs[0, 1:3] = log_probs[0, 1:3].log()
    for chance in (0.0, 0.299, 0.301, 1 - 2.0**-40):
        drawn = draw(log_probs, torch.tensor([chance], dtype=torch.float64))
        assert drawn.item() == (1 if chance < 0.3 else 2)
