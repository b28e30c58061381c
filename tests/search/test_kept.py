"""A kept search: changes nothing, adds up, and can be read."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.core.errors import UsageError
from regard.search.beam import BeamSpec
from regard.search.exhaustive import ExhaustiveSpec
from regard.search.greedy import GreedySpec
from regard.search.kept import Kept, draw
from regard.search.required import RequiredWords
from regard.search.sampling import SamplingSpec
from regard.search.stopping import NoBetterPossibleSpec
from tests.search.chains import Tree, markov

END = 0
SEARCHES = [
    GreedySpec(),
    BeamSpec(size=3, best=2),
    BeamSpec(size=4, alpha=0.5, stop=NoBetterPossibleSpec()),
    SamplingSpec(best=3),
    ExhaustiveSpec(best=2),
]


@pytest.mark.parametrize("spec", SEARCHES, ids=lambda spec: spec.kind())
@settings(max_examples=7)
@given(seed=st.integers(0, 10_000), impossible=st.sampled_from([0.0, 0.4]))
def test_keeping_changes_nothing_and_adds_up(spec, seed, impossible):
    tree, search, kept = Tree(seed, 4, impossible), spec.build(), Kept(words=3)
    given_ = (tree.step, tree.start(range(3)), torch.tensor([1, 2, 3]), END, 4)
    found = search(*given_, keep=kept)
    assert found == search(*given_)
    assert list(kept.sentences) == [0, 1, 2]
    for sentence, some in enumerate(found):
        whole = kept.sentences[sentence]
        for one in whole.expansions:
            path = whole.path(one.node)
            assert path[-1] is one
            assert one.step == len(path)
            assert all(before.status == "kept" for before in path[:-1])
            assert one.cumulative == pytest.approx(sum(step.log_prob for step in path))
            assert one.score == pytest.approx(one.cumulative / one.step**spec.alpha)
            assert (one.token == END) >= (one.status == "finished")
            tokens = [step.token for step in path]
            assert one.log_prob == pytest.approx(tree.log_probs(sentence, sentence + 1, tokens)[-1])
            words = whole.words[one.parent]
            assert len(words) == 3
            assert words[0][1] >= one.log_prob - 1e-12
        finished = [one for one in some if one.finished]
        if finished:
            assert whole.best is not None
            assert whole.best.score == finished[0].score
            assert [step.token for step in whole.path(whole.best.node)] == [*finished[0].tokens, END]
        else:
            assert whole.best is None


def test_a_beam_keeps_what_it_prunes():
    tree, kept = Tree(1, 5), Kept()
    BeamSpec(size=2).build()(tree.step, tree.start([0]), torch.tensor([1]), END, 6, keep=kept)
    statuses = [one.status for one in kept.sentences[0].expansions if one.step == 2]
    assert statuses.count("kept") == 2
    assert statuses.count("pruned") >= 1


def test_goals_can_be_kept_too():
    tree, kept = Tree(1, 5), Kept()
    words = [RequiredWords([[[[4, 4]]]], END)]
    found = BeamSpec(size=2).build()(
        tree.step, tree.start([0]), torch.tensor([1]), END, 9, constraints=words, keep=kept
    )
    best = kept.sentences[0].best
    assert best is not None
    assert [one.token for one in kept.sentences[0].path(best.node)][:-1] == found[0][0].tokens


def test_many_batches_go_into_one_and_out_as_json():
    tree, kept, search = Tree(1, 5), Kept(), GreedySpec().build()
    for numbers in ([4, 2], [7]):
        first = torch.ones(len(numbers), dtype=torch.long)
        search(tree.step, tree.start(numbers), first, END, 6, keep=kept, numbers=numbers)
    plain = kept.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert sorted(plain) == ["2", "4", "7"]
    assert set(plain["2"]["expansions"][0]) == {
        "node", "parent", "step", "token", "log_prob", "cumulative", "score", "status",
    }  # fmt: skip
    with pytest.raises(UsageError, match="sentence 7 is kept already"):
        search(tree.step, tree.start([7]), torch.tensor([1]), END, 6, keep=kept, numbers=[7])


def test_the_tree_is_drawn():
    """1 → 2 (0.6) or 3 (0.4); 2 → end (0.5) or 4 (0.5); 3 → 4 (0.9); 4 → end."""
    probabilities = torch.zeros(5, 5, dtype=torch.float64)
    probabilities[1, 2], probabilities[1, 3] = 0.6, 0.4
    probabilities[2, END], probabilities[2, 4] = 0.45, 0.55
    probabilities[3, END], probabilities[3, 4] = 0.1, 0.9
    probabilities[4, END] = 1.0
    kept = Kept()
    spec = BeamSpec(size=2, alpha=0, stop=NoBetterPossibleSpec())
    spec.build()(markov(probabilities.log()), None, torch.tensor([1]), END, 4, keep=kept)
    words = {0: "</s>", 2: "the", 3: "a", 4: "cat"}
    assert draw(kept.sentences[0], words.__getitem__).splitlines() == [
        "●",
        f"├─ the·0.60 cat·0.55 </s>·1.00 ■ {math.log(0.33):.3f}",
        f"└─ a·0.40 cat·0.90 </s>·1.00 ■ {math.log(0.36):.3f} best",
    ]
    assert draw(kept.sentences[0], words.__getitem__, pruned=True).splitlines() == [
        "●",
        f"├─ the·0.60 {math.log(0.6):.3f}",
        f"│  ├─ cat·0.55 </s>·1.00 ■ {math.log(0.33):.3f}",
        f"│  └─ </s>·0.45 × {math.log(0.27):.3f}",
        f"└─ a·0.40 {math.log(0.4):.3f}",
        f"   ├─ cat·0.90 </s>·1.00 ■ {math.log(0.36):.3f} best",
        f"   └─ </s>·0.10 × {math.log(0.04):.3f}",
    ]
