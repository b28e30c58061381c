"""Beam, greedy and exhaustive search against each other, against recursion and against hand values."""

import math
from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.core.errors import RegardError, UsageError
from regard.search.beam import Beam, BeamSpec
from regard.search.exhaustive import ExhaustiveSpec
from regard.search.greedy import GreedySpec
from regard.search.kept import Kept
from regard.search.search import SearchSpec
from regard.search.stopping import EnoughFinishedSpec, NoBetterPossibleSpec, Standing
from tests.search.chains import Tree, markov

END = 0
seeds = st.integers(0, 10_000)
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])
impossibles = st.sampled_from([0.0, 0.4])


def never(standing: Standing) -> Tensor:
    return torch.zeros_like(standing.longest, dtype=torch.bool)


def firsts(tree: Tree, sentences: int) -> Tensor:
    return 1 + torch.arange(sentences) % (tree.vocabulary - 1)


@given(seed=seeds, alpha=alphas, impossible=impossibles, longest=st.integers(1, 4))
def test_exhaustive_finds_what_recursion_finds(seed, alpha, impossible, longest):
    tree = Tree(seed, 5, impossible)
    found = ExhaustiveSpec(alpha=alpha, best=7).build()(
        tree.step, tree.start([3]), torch.tensor([2]), END, longest
    )
    answers = [
        (sum(own) / (len(tokens) + 1) ** alpha, tokens, own)
        for tokens, own in tree.all_answers(3, 2, END, longest)
    ]
    answers = sorted(answers, key=lambda one: -one[0])[:7]
    if not answers:
        assert not found[0][0].finished
        return
    assert [one.tokens for one in found[0]] == [tokens for _, tokens, _ in answers]
    assert [one.score for one in found[0]] == pytest.approx([score for score, _, _ in answers])
    assert [one.log_prob for one in found[0]] == pytest.approx([sum(own) for _, _, own in answers])
    assert found[0][0].token_log_probs == pytest.approx(answers[0][2])


@given(seed=seeds, alpha=alphas, impossible=impossibles)
def test_a_beam_that_prunes_nothing_is_exhaustive(seed, alpha, impossible):
    tree, longest = Tree(seed, 3, impossible), torch.tensor([5, 2])
    start, first = tree.start([0, 1]), firsts(tree, 2)
    beam = BeamSpec(size=3**5, best=3, alpha=alpha).build()(tree.step, start, first, END, longest)
    whole = ExhaustiveSpec(best=3, alpha=alpha).build()(tree.step, start, first, END, longest)
    assert [[one.tokens for one in some] for some in beam] == [[one.tokens for one in some] for some in whole]
    for one, other in zip(chain(*beam), chain(*whole), strict=True):
        assert one.finished == other.finished
        assert one.score == pytest.approx(other.score)
        assert one.token_log_probs == pytest.approx(other.token_log_probs)


@given(seed=seeds, size=st.integers(1, 4), alpha=alphas, impossible=impossibles)
def test_what_a_beam_says_is_what_the_model_says(seed, size, alpha, impossible):
    """Log-probabilities are those of the tokens returned: no row was mixed up with another."""
    tree, sentences = Tree(seed, 7, impossible), 5
    first = firsts(tree, sentences)
    search = BeamSpec(size=size, best=size, alpha=alpha).build()
    found = search(tree.step, tree.start(range(sentences)), first, END, 11)
    for sentence, some in enumerate(found):
        assert 1 <= len(some) <= size
        assert len({(*one.tokens, one.finished) for one in some}) == len(some)
        assert [one.score for one in some] == sorted((one.score for one in some), reverse=True)
        for one in some:
            whole = [*one.tokens, END] if one.finished else one.tokens
            assert END not in one.tokens
            assert one.token_log_probs == pytest.approx(tree.log_probs(sentence, int(first[sentence]), whole))
            assert one.log_prob == pytest.approx(sum(one.token_log_probs))
            assert one.score == pytest.approx(one.log_prob / max(1, len(whole)) ** alpha)


@given(seed=seeds, alpha=alphas, impossible=impossibles)
def test_greedy_is_a_beam_of_one(seed, alpha, impossible):
    tree, sentences = Tree(seed, 5, impossible), 11
    given_ = (tree.step, tree.start(range(sentences)), firsts(tree, sentences), END, 13)
    assert GreedySpec(alpha=alpha).build()(*given_) == BeamSpec(size=1, alpha=alpha).build()(*given_)


def the_garden_path() -> Tensor:
    """1 begins; 2 is likelier than 3, but whatever follows 2 is unlikely, and 4 after 3 is nearly sure."""
    probabilities = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.6, 0.4, 0.0],
            [0.3, 0.0, 0.2, 0.2, 0.3],
            [0.1, 0.0, 0.0, 0.0, 0.9],
            [1.0, 0.0, 0.0, 0.0, 0.0],
        ],
        dtype=torch.float64,
    )
    return probabilities.log()


def test_greedy_misses_the_best_answer_and_a_beam_of_two_finds_it():
    given_ = (markov(the_garden_path()), None, torch.tensor([1]), END, 4)
    greedy = GreedySpec(alpha=0).build()(*given_)[0][0]
    beam = BeamSpec(size=2, alpha=0).build()(*given_)[0][0]
    whole = ExhaustiveSpec(alpha=0).build()(*given_)[0][0]
    assert greedy.tokens in ([2], [2, 4])
    assert greedy.log_prob == pytest.approx(math.log(0.6 * 0.3))
    assert beam.tokens == whole.tokens == [3, 4]
    assert beam.log_prob == pytest.approx(math.log(0.4 * 0.9))


def test_length_normalisation_repairs_the_bias_to_short_answers():
    """End at once (0.35), or go 2, 3, 4 and then end for sure: 0.65 · 0.7 · 0.7 = 0.3185."""
    probabilities = torch.zeros(5, 5, dtype=torch.float64)
    probabilities[1, END], probabilities[1, 2] = 0.35, 0.65
    probabilities[2, END], probabilities[2, 3] = 0.3, 0.7
    probabilities[3, END], probabilities[3, 4] = 0.3, 0.7
    probabilities[4, END] = 1.0
    given_ = (markov(probabilities.log()), None, torch.tensor([1]), END, 6)
    plain, half, fair = (
        BeamSpec(size=3, alpha=alpha, stop=NoBetterPossibleSpec()).build()(*given_)[0][0]
        for alpha in (0.0, 0.5, 1.0)
    )
    long = math.log(0.65 * 0.7 * 0.7)
    assert (plain.tokens, plain.score) == ([], pytest.approx(math.log(0.35)))
    assert (fair.tokens, fair.score) == ([2, 3, 4], pytest.approx(long / 4))
    assert (half.tokens, half.score) == ([2, 3, 4], pytest.approx(long / 2))


@given(seed=seeds, size=st.integers(1, 5), alpha=alphas, best=st.integers(1, 3), impossible=impossibles)
def test_no_better_possible_stops_without_changing_the_answer(seed, size, alpha, best, impossible):
    tree, sentences, best = Tree(seed, 5, impossible), 3, min(size, best)
    given_ = (tree.start(range(sentences)), firsts(tree, sentences), END, torch.tensor([9, 4, 7]))
    spec = BeamSpec(size=size, best=best, alpha=alpha, stop=NoBetterPossibleSpec())
    assert spec.build()(tree.step, *given_) == Beam(spec, never)(tree.step, *given_)


def test_no_better_possible_does_stop_early():
    tree = Tree(5, 3)
    given_ = (tree.step, tree.start([0]), torch.tensor([1]), END, 60)
    BeamSpec(size=3, alpha=0.0, stop=NoBetterPossibleSpec()).build()(*given_)
    assert len(tree.rows) < 30


def test_enough_finished_stops_at_the_number_asked_for():
    """Every row ends with 0.4 at each step: one hypothesis finishes per step and live hypothesis."""
    table = torch.tensor([[1.0, 0.0], [0.4, 0.6]], dtype=torch.float64).log()
    for asked in (1, 2, 3):
        calls = []

        def step(tokens, state, calls=calls):
            calls.append(len(tokens))
            return table[tokens], state

        spec = BeamSpec(size=3, stop=EnoughFinishedSpec(finished=asked))
        spec.build()(step, None, torch.tensor([1]), END, 9)
        assert len(calls) == asked


SEARCHES = [
    GreedySpec(),
    BeamSpec(size=3, best=2),
    BeamSpec(size=4, best=4, alpha=0.3, stop=NoBetterPossibleSpec()),
    ExhaustiveSpec(best=2, most=4**6),
]


@pytest.mark.parametrize("spec", SEARCHES, ids=lambda spec: spec.kind())
@settings(max_examples=7)
@given(seed=seeds, impossible=impossibles, order=st.permutations(range(5)))
def test_a_sentence_alone_in_a_batch_and_in_another_order(spec, seed, impossible, order):
    tree, search = Tree(seed, 4, impossible), spec.build()
    first, longest = firsts(tree, 5), torch.tensor([6, 1, 3, 5, 6])
    together = search(tree.step, tree.start(range(5)), first, END, longest)
    shuffled = search(tree.step, tree.start(order), first[order], END, longest[order])
    assert shuffled == [together[i] for i in order]
    for i in range(5):
        alone = search(tree.step, tree.start([i]), first[i : i + 1], END, int(longest[i]))
        assert alone == [together[i]]


@pytest.mark.parametrize("size", [1, 3])
def test_finished_sentences_leave_the_batch(size):
    """Sentence i can only go i steps and then must end."""
    calls: list[list[int]] = []

    def step(tokens, state):
        calls.append(state[:, 0].tolist())
        log_probs = torch.full((len(tokens), 5), -1.7)
        log_probs[:, END] = torch.where(state[:, 0] > 0, float("-inf"), 0.0)
        return log_probs, state - 1

    state = torch.tensor([[0], [3], [1]])
    spec = BeamSpec(size=size, stop=EnoughFinishedSpec(finished=1)) if size > 1 else GreedySpec()
    found = spec.build()(step, state, torch.tensor([1, 1, 1]), END, 17)
    assert [len(some[0].tokens) for some in found] == [0, 3, 1]
    assert calls == [[0, 3, 1], [2] * size + [0] * size, [1] * size, [0] * size]


def test_nothing_finished_returns_what_lives():
    table = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.7, 0.3], [0.0, 0.5, 0.5]], dtype=torch.float64).log()
    found = BeamSpec(size=3, best=2).build()(markov(table), None, torch.tensor([1]), END, 2)[0]
    assert [(one.tokens, one.finished) for one in found] == [([1, 1], False), ([1, 2], False)]
    assert found[0].score == pytest.approx(math.log(0.49) / 2)
    assert len(found[1].token_log_probs) == 2


@pytest.mark.parametrize("spec", [GreedySpec(), BeamSpec(size=2), ExhaustiveSpec()], ids=lambda s: s.kind())
def test_a_dead_end_returns_what_there_is(spec):
    """1 → 2 → 3 with 0.5 each; after 3 nothing is possible."""
    table = torch.zeros(4, 4, dtype=torch.float64)
    table[1, 2] = table[2, 3] = 0.5
    found = spec.build()(markov(table.log()), None, torch.tensor([1, 3]), END, 5)
    assert [(some[0].tokens, some[0].finished) for some in found] == [([2, 3], False), ([], False)]
    assert [some[0].log_prob for some in found] == pytest.approx([math.log(0.25), 0.0])
    assert [some[0].score for some in found] == pytest.approx([math.log(0.25) / 2, 0.0])


@pytest.mark.parametrize("spec", SEARCHES, ids=lambda spec: spec.kind())
def test_nan_is_refused_by_step_and_sentence(spec):
    def step(tokens, state):
        log_probs = torch.tensor([-7.0, -1.1, -1.2]).repeat(len(tokens), 1)
        log_probs[(state == 31), 2] = float("nan")
        return log_probs, state + 10

    with pytest.raises(RegardError, match="NaN probabilities at step 3 of sentence 8"):
        spec.build()(step, torch.tensor([5, 11]), torch.tensor([1, 1]), END, 6, numbers=[7, 8])


def test_a_vocabulary_of_only_the_end():
    found = BeamSpec(size=3).build()(markov(torch.zeros(1, 1)), None, torch.tensor([0, 0]), END, 4)
    assert [(some[0].tokens, some[0].finished) for some in found] == [([], True)] * 2


def test_no_sentences_no_answers():
    assert (
        BeamSpec().build()(markov(torch.zeros(1, 1)), None, torch.tensor([], dtype=torch.long), END, 4) == []
    )


def test_impossible_requests_name_both_values():
    with pytest.raises(UsageError, match=r"best: got 6.*size 5"):
        BeamSpec.from_dict({"kind": "beam", "best": 6})
    with pytest.raises(UsageError, match=r"stop.finished: got 2.*3 best"):
        BeamSpec(best=3, stop=EnoughFinishedSpec(finished=2)).build()
    with pytest.raises(UsageError, match=r"longest: got 0"):
        GreedySpec().build()(markov(torch.zeros(1, 1)), None, torch.tensor([0]), END, 0)
    with pytest.raises(UsageError, match=r"5\^7 = 78125 .*most=100\b"):
        ExhaustiveSpec(most=100).build()(Tree(0, 5).step, Tree(0, 5).start([0]), torch.tensor([1]), END, 7)
    with pytest.raises(UsageError, match="1 different sentence numbers for 2"):
        GreedySpec().build()(
            markov(torch.zeros(2, 2)), None, torch.tensor([0, 1]), END, 3, keep=Kept(), numbers=[4, 4]
        )


def test_specs_go_to_json_and_back():
    spec = BeamSpec(
        size=7, stop=NoBetterPossibleSpec(), constraints=[{"kind": "no_repeat", "length": 2}], shortest=1
    )
    assert SearchSpec.from_json(spec.to_json()) == spec
    assert spec.override(["stop={kind: enough_finished, finished: 7}"]).stop == EnoughFinishedSpec(finished=7)


def test_greatest_length_follows_the_source():
    spec = GreedySpec(longest_ratio=1.5, longest_extra=3)
    assert [spec.longest(source) for source in (0, 1, 10)] == [3, 4, 18]
