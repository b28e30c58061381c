"""Each constraint against its meaning: the answers left are exactly those that satisfy a plain predicate."""

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.core.errors import UsageError
from regard.search.beam import BeamSpec
from regard.search.constraints import (
    NONE,
    Constraint,
    ForbiddenWords,
    ForcedPrefix,
    MinLength,
    NoRepeat,
    NoRepeatSpec,
    RepetitionPenalty,
    RepetitionPenaltySpec,
    Rules,
)
from regard.search.exhaustive import ExhaustiveSpec
from regard.search.greedy import GreedySpec
from regard.search.required import RequiredWords
from regard.search.sampling import SamplingSpec
from regard.search.stopping import NoBetterPossibleSpec
from tests.search.chains import Tree

END = 0
Tokens = Sequence[int]
Case = tuple[Callable[[int], Constraint], Callable[[Tokens], bool]]


def occurs(phrase: Tokens, tokens: Tokens) -> bool:
    return any(
        list(tokens[i : i + len(phrase)]) == list(phrase) for i in range(len(tokens) - len(phrase) + 1)
    )


def repeats(tokens: Tokens, length: int) -> bool:
    grams = [tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)]
    return len(set(grams)) < len(grams)


PREFIX, FORBIDDEN, REQUIRED = [2, 1], [[1], [2, 2], [3, 2, 3]], [[[1, 2], [3, 1, 1]], [[2]]]
LIMITS: dict[str, Case] = {
    "min_length": (lambda n: MinLength(3, END), lambda y: len(y) >= 3),
    "forced_prefix": (lambda n: ForcedPrefix([PREFIX] * n), lambda y: y[:2] == PREFIX),
    "no_repeat_1": (lambda n: NoRepeat(1), lambda y: not repeats(y, 1)),
    "no_repeat_2": (lambda n: NoRepeat(2), lambda y: not repeats(y, 2)),
    "forbidden": (
        lambda n: ForbiddenWords([FORBIDDEN] * n),
        lambda y: not any(occurs(f, y) for f in FORBIDDEN),
    ),
}
REQUIRE: Case = (
    lambda n: RequiredWords([REQUIRED] * n, END),
    lambda y: all(any(occurs(one, y) for one in phrase) for phrase in REQUIRED),
)
CASES = LIMITS | {"required": REQUIRE}
seeds = st.integers(0, 10_000)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=7)
@given(seed=seeds, impossible=st.sampled_from([0.0, 0.3]))
def test_exactly_the_answers_that_satisfy_it_are_left(name, seed, impossible):
    constraint, satisfies = CASES[name]
    tree = Tree(seed, 4, impossible)
    given_ = (tree.step, tree.start([3]), torch.tensor([2]), END, 6)
    found = ExhaustiveSpec(best=9999, alpha=0).build()(*given_, constraints=[constraint(1)])[0]
    answers = [(y, own) for y, own in tree.all_answers(3, 2, END, 6) if satisfies(y)]
    if not answers:
        assert not any(one.finished for one in found)
        return
    assert sorted(one.tokens for one in found) == sorted(y for y, _ in answers)
    best = max(answers, key=lambda one: sum(one[1]))
    assert found[0].tokens == best[0]
    assert found[0].log_prob == pytest.approx(sum(best[1]))


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=7)
@given(seed=seeds)
def test_a_beam_that_prunes_nothing_finds_the_best_constrained_answer(name, seed):
    constraint, _ = CASES[name]
    tree = Tree(seed, 4)
    given_ = (tree.step, tree.start([0, 1]), torch.tensor([2, 3]), END, torch.tensor([5, 4]))
    beam = BeamSpec(size=4**5, best=3).build()(*given_, constraints=[constraint(2)])
    whole = ExhaustiveSpec(best=3).build()(*given_, constraints=[constraint(2)])
    # At the greatest length only the best unfinished ones are the same: a beam also orders by goals reached.
    for some, others in zip(beam, whole, strict=True):
        assert some[0].finished == others[0].finished
        if some[0].finished:
            assert [one.tokens for one in some] == [one.tokens for one in others]


@pytest.mark.parametrize("name", LIMITS)
@settings(max_examples=7)
@given(seed=seeds, impossible=st.sampled_from([0.0, 0.3]))
def test_every_search_keeps_to_it(name, seed, impossible):
    constraint, satisfies = LIMITS[name]
    tree = Tree(seed, 7, impossible)
    for spec in (GreedySpec(), BeamSpec(size=3, best=3), SamplingSpec(best=3, seed=seed)):
        given_ = (tree.step, tree.start(range(5)), torch.tensor([1, 2, 3, 4, 5]), END, 13)
        for one in (one for some in spec.build()(*given_, constraints=[constraint(5)]) for one in some):
            assert satisfies(one.tokens) or not one.finished
            if name not in ("min_length", "forced_prefix"):
                assert satisfies(one.tokens)


@given(seed=seeds)
def test_constraints_work_together(seed):
    tree, both = (
        Tree(seed, 5),
        [NoRepeat(2), MinLength(4, END), ForbiddenWords([[[3]]] * 3), ForcedPrefix([[2]] * 3)],
    )
    given_ = (tree.step, tree.start(range(3)), torch.tensor([1, 2, 3]), END, 11)
    for one in (one for some in BeamSpec(size=4, best=4).build()(*given_, constraints=both) for one in some):
        assert not repeats(one.tokens, 2)
        assert len(one.tokens) >= 4
        assert 3 not in one.tokens
        assert one.tokens[0] == 2


@pytest.mark.parametrize(
    "spec", [GreedySpec(), BeamSpec(size=3, best=2), ExhaustiveSpec()], ids=lambda s: s.kind()
)
@settings(max_examples=7)
@given(seed=seeds, order=st.permutations(range(5)))
def test_each_sentence_has_its_own(spec, seed, order):
    """Prefixes and words differ per sentence and follow it through batches and orders."""
    tree, search, first = Tree(seed, 4), spec.build(), torch.tensor([1, 2, 3, 1, 2])
    prefixes = [[], [1], [3, 3, 1], [2, 2], []]
    forbidden = [[[1, 2]], [], [[2]], [[3], [1, 1]], []]
    longest = torch.tensor([6, 4, 5, 6, 3])

    def ask(some: Sequence[int]) -> list:
        rows = list(some)
        limits = [ForcedPrefix([prefixes[i] for i in rows]), ForbiddenWords([forbidden[i] for i in rows])]
        return search(tree.step, tree.start(rows), first[rows], END, longest[rows], constraints=limits)

    together = ask(range(5))
    assert ask(order) == [together[i] for i in order]
    assert [ask([i])[0] for i in range(5)] == together
    for some, prefix, phrases in zip(together, prefixes, forbidden, strict=True):
        assert some[0].tokens[: len(prefix)] == prefix or not some[0].finished
        assert not any(occurs(phrase, some[0].tokens) for phrase in phrases)


def test_the_penalty_multiplies_what_occurred_and_only_the_score_knows():
    """From 1: 2 twice would be best (0.6 · 0.6); at factor 3 the second 2 counts 0.6³ < 0.3."""
    table = torch.tensor(
        [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.6, 0.4], [0.1, 0.0, 0.6, 0.3], [1.0, 0, 0, 0]]
    ).double()

    def step(tokens, state):
        return table.log()[tokens], state

    given_ = (step, None, torch.tensor([1]), END, 3)
    plain = GreedySpec(alpha=0).build()(*given_)[0][0]
    assert (plain.tokens, plain.finished) == ([2, 2, 2], False)
    fair = GreedySpec(alpha=0, constraints=(RepetitionPenaltySpec(factor=3.0),)).build()(*given_)[0][0]
    assert (fair.tokens, fair.finished) == ([2, 3], True)
    mild = GreedySpec(alpha=0).build()(*given_, constraints=[RepetitionPenalty(1.1)])[0][0]
    assert mild.tokens == [2, 2, 2]
    assert mild.log_prob == pytest.approx(3 * torch.tensor(0.6).log().item())
    assert mild.score == pytest.approx((1 + 1.1 + 1.1) * torch.tensor(0.6).log().item())


def test_constraints_of_a_spec_hold():
    tree = Tree(2, 5)
    given_ = (tree.step, tree.start(range(3)), torch.tensor([1, 2, 3]), END, 11)
    for kind in (GreedySpec, BeamSpec):
        for some in kind(shortest=5, constraints=(NoRepeatSpec(length=2),)).build()(*given_):
            assert len(some[0].tokens) >= 5
            assert not repeats(some[0].tokens, 2)


def test_nothing_of_the_models_is_written_to():
    tree = Tree(4, 4)
    before = tree.table.clone()

    def step(tokens, state):
        _, state = tree.step(tokens, state)
        return tree.table[: len(tokens)], state

    constraints = [case[0](3) for case in CASES.values()] + [RepetitionPenalty(2.0)]
    BeamSpec().build()(step, tree.start(range(3)), torch.tensor([1, 2, 3]), END, 7, constraints=constraints)
    assert torch.equal(tree.table, before)


@given(seed=seeds, size=st.integers(1, 6), longest=st.integers(5, 12))
def test_required_words_are_found_by_any_beam_when_there_is_time(seed, size, longest):
    """All continuations are possible and the phrases need at most 4 tokens: a beam of one is enough."""
    tree = Tree(seed, 7)
    given_ = (tree.step, tree.start(range(5)), torch.tensor([1, 2, 3, 4, 5]), END, longest)
    constraint, satisfies = REQUIRE
    for some in BeamSpec(size=size).build()(*given_, constraints=[constraint(5)]):
        assert satisfies(some[0].tokens)


words = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@settings(max_examples=60)
@given(
    required=st.lists(st.lists(words, min_size=1, max_size=2), min_size=1, max_size=3),
    said=st.lists(st.integers(1, 3), max_size=8),
)
def test_a_wanted_token_always_brings_the_goal_nearer(required, said):
    """The contract of goals; with so few tokens, phrases overlap and break one another off."""
    rules = Rules([RequiredWords([required], END)])
    state = rules.start(torch.tensor([1]))
    for token in said:
        state = rules.follow(torch.tensor([token]), state)
    options = {token for token in rules.wanted(state)[0].tolist() if token != NONE}
    after = [rules.follow(torch.tensor([token]), state) for token in options]
    if all(any(occurs(one, said) for one in phrase) for phrase in required):
        assert not options
    else:
        assert max(int(rules.progress(one)) for one in after) > int(rules.progress(state))


@given(seed=seeds)
def test_overlapping_phrases_do_not_hold_each_other_up(seed):
    tree, phrases = Tree(seed, 7), [[[1, 2, 3]], [[2, 4]], [[3, 1, 2]], [[4, 4]]]
    given_ = (tree.step, tree.start([0]), torch.tensor([1]), END, 10)
    found = BeamSpec(size=2).build()(*given_, constraints=[RequiredWords([phrases], END)])[0][0]
    assert all(occurs(one, found.tokens) for phrase in phrases for one in phrase)


@settings(max_examples=7)
@given(seed=seeds, order=st.permutations(range(5)))
def test_required_words_of_one_sentence_leave_the_others_alone(seed, order):
    tree, first = Tree(seed, 7), torch.tensor([1, 2, 3, 4, 5])
    required = [[], [[[1, 2]], [[6], [5, 5]]], [], [[[3]]], []]
    search = BeamSpec(size=4, best=2, stop=NoBetterPossibleSpec()).build()

    def ask(some: Sequence[int], with_words: bool = True) -> list:
        rows = list(some)
        words = [RequiredWords([required[i] for i in rows], END)] if with_words else []
        return search(tree.step, tree.start(rows), first[rows], END, 8, constraints=words)

    together, free = ask(range(5)), ask(range(5), with_words=False)
    assert [together[i] for i in (0, 2, 4)] == [free[i] for i in (0, 2, 4)]
    assert ask(order) == [together[i] for i in order]
    assert [ask([i])[0] for i in range(5)] == together


def test_no_time_for_required_words_is_said():
    tree = Tree(1, 5)
    given_ = (tree.step, tree.start([0]), torch.tensor([1]), END, 2)
    found = BeamSpec().build()(*given_, constraints=[RequiredWords([[[[1, 2, 3]]]], END)])[0][0]
    assert not found.finished
    assert found.tokens == [1, 2]


def test_goals_make_room_where_the_plain_beam_has_none():
    """Token 4 has probability 0.001 everywhere: it survives only in a bank of its own.

    To end is the second best continuation there: far down among all, but second in its bank.
    """
    row = torch.tensor([0.299, 0.35, 0.25, 0.1, 0.001], dtype=torch.float64)

    def step(tokens, state):
        return row.log().expand(len(tokens), -1), state

    given_ = (step, None, torch.tensor([1]), END, 6)
    for size in (1, 2, 3, 5, 11):
        found = BeamSpec(size=size).build()(*given_, constraints=[RequiredWords([[[[4, 4]]]], END)])[0][0]
        assert found.finished == (size > 1)
        assert occurs([4, 4], found.tokens)


def test_the_first_token_of_the_vocabulary_can_be_required():
    """Once 2 is met its place among the wanted tokens is empty, which must not be taken for token 0."""
    row = torch.tensor([0.001, 0.299, 0.6, 0.1], dtype=torch.float64)

    def step(tokens, state):
        return row.log().expand(len(tokens), -1), state

    words = [RequiredWords([[[[2]], [[0]]]], end=1)]
    found = BeamSpec(size=1).build()(step, None, torch.tensor([3]), 1, 6, constraints=words)[0][0]
    assert {0, 2} <= set(found.tokens)


def test_requests_that_cannot_be():
    tree = Tree(1, 5)
    given_ = (tree.step, tree.start([0]), torch.tensor([1]), END, 5)
    with pytest.raises(UsageError, match="required words need a beam"):
        GreedySpec().build()(*given_, constraints=[RequiredWords([[[[1]]]], END)])
    nothing_required = GreedySpec().build()(*given_, constraints=[RequiredWords([[]], END)])
    assert nothing_required == GreedySpec().build()(*given_)
    with pytest.raises(UsageError, match="forced prefixes: given for 2 sentences, but there are 1"):
        GreedySpec().build()(*given_, constraints=[ForcedPrefix([[1], [2]])])
    with pytest.raises(UsageError, match="has no tokens"):
        ForbiddenWords([[[1], []]])
    with pytest.raises(UsageError, match="contains the end token 0"):
        RequiredWords([[[[1, END]]]], END)
    with pytest.raises(UsageError, match=r"length: got 0"):
        NoRepeatSpec.from_dict({"length": 0})
