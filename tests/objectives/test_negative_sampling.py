"""Both ways of learning word vectors against the definition, pair by pair."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.data.word_windows import WordBatch
from regard.models.word_vectors import WordVectors, WordVectorsSpec
from regard.objectives.negative_sampling import CbowSpec, SkipGramSpec, readable_told_apart, told_apart
from regard.objectives.objective import Progress

NEGATIVES = 5


def model(vocabulary: int = 11, width: int = 7) -> WordVectors:
    torch.manual_seed(0)
    made = WordVectorsSpec(width=width).build({"text": vocabulary})
    for table in (made.words, made.contexts):
        assert table is not None
        nn.init.normal_(table.weight)
    return made


def batch(groups: int = 3) -> WordBatch:
    """Groups of four words that look two to either side."""
    random = np.random.default_rng(1)
    near = random.random((groups, 4, 5)) < 0.5
    near[..., 2] = False  # itself
    near[1, 2] = False  # a word without any around it
    return WordBatch(
        torch.from_numpy(random.integers(1, 11, groups * 4 + 4)),
        torch.from_numpy(near),
        torch.from_numpy(random.integers(1, 11, (groups, 6))),
        np.arange(groups),
    )


def looked_at(given: WordBatch, group: int, place: int) -> list[int]:
    """The words that one looks at, counted out on the line."""
    begin = group * 4 + place
    return [int(given.line[begin + far]) for far in range(5) if given.near[group, place, far]]


def sigma(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def skip_gram_pair_by_pair(made: WordVectors, given: WordBatch) -> tuple[Tensor, int]:
    assert made.contexts is not None
    own, seen = made.words.weight, made.contexts.weight
    loss, pairs = torch.zeros(()), 0
    for group in range(3):
        for place, word in enumerate(given.words[group].tolist()):
            for other in looked_at(given, group, place):
                pairs += 1
                loss = loss - torch.log(sigma(seen[other] @ own[word]))
                for noise in given.noise[group].tolist():
                    if noise != other:
                        loss = loss - NEGATIVES / 6 * torch.log(sigma(-seen[noise] @ own[word]))
    return loss, pairs


def cbow_word_by_word(made: WordVectors, given: WordBatch) -> tuple[Tensor, int]:
    assert made.contexts is not None
    own, seen = made.words.weight, made.contexts.weight
    loss, words = torch.zeros(()), 0
    for group in range(3):
        for place, word in enumerate(given.words[group].tolist()):
            others = looked_at(given, group, place)
            if not others:
                continue
            words += 1
            mean = torch.stack([own[other] for other in others]).mean(0)
            loss = loss - torch.log(sigma(seen[word] @ mean))
            for noise in given.noise[group].tolist():
                if noise != word:
                    loss = loss - NEGATIVES / 6 * torch.log(sigma(-seen[noise] @ mean))
    return loss, words


@pytest.mark.parametrize(
    ("spec", "twin"),
    [
        (SkipGramSpec(negatives=NEGATIVES), skip_gram_pair_by_pair),
        (CbowSpec(negatives=NEGATIVES), cbow_word_by_word),
    ],
    ids=["skip-gram", "cbow"],
)
def test_equals_the_definition_with_its_gradient(spec, twin) -> None:  # type: ignore[no-untyped-def]
    made, given = model(), batch()
    weights = list(made.parameters())
    outcome = spec.build()(made, given, Progress(1, 0, 0))
    loss, count = twin(made, given)
    assert outcome.count == count
    assert float(outcome.loss.detach()) == pytest.approx(float(loss.detach()), rel=1e-5)
    ours, theirs = torch.autograd.grad(outcome.loss, weights), torch.autograd.grad(loss, weights)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.is_sparse, "only the rows of a batch have a gradient"
        assert mine.is_coalesced(), "and each of them one"
        torch.testing.assert_close(mine.to_dense(), other, rtol=1e-4, atol=1e-5)


def test_costs_what_guessing_costs_to_begin_with() -> None:
    """A second table of zeros knows nothing: every comparison costs log 2."""
    made = WordVectorsSpec(width=7).build({"text": 11})
    given = batch()._replace(noise=torch.zeros(3, 6, dtype=torch.long))  # no word that is there
    outcome = SkipGramSpec(negatives=NEGATIVES).build()(made, given, Progress(1, 0, 0))
    per_pair = float(outcome.loss.detach()) / outcome.count
    assert per_pair == pytest.approx((1 + NEGATIVES) * math.log(2), rel=1e-5)


def test_one_wanted_word_is_told_from_noise_as_term_by_term() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(3, 4, 7, requires_grad=True), torch.randn(3 * 4 + 3 * 6, 7, requires_grad=True)
    there, others = torch.rand(3, 4) < 0.7, torch.rand(3, 4, 6) < 0.7
    ours = told_apart(x, y, there, others, NEGATIVES)
    theirs = readable_told_apart(x, y, there, others, NEGATIVES)
    torch.testing.assert_close(ours, theirs)
    # Twice the cost, twice the slope.
    mine, other = torch.autograd.grad(2 * ours, (x, y)), torch.autograd.grad(2 * theirs, (x, y))
    torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("spec", [SkipGramSpec(), CbowSpec()], ids=["skip-gram", "cbow"])
def test_parts_of_a_batch_cost_what_the_whole_costs_with_its_gradient(spec) -> None:  # type: ignore[no-untyped-def]
    made, many = model(), batch(groups=40)
    weights, objective = list(made.parameters()), spec.build()
    whole = objective(made, many, Progress(1, 0, 0))
    parts = [objective(made, part, Progress(1, 0, 0)) for part in many.split(2)]
    assert len(parts) == 2
    assert sum(part.count for part in parts) == whole.count
    torch.testing.assert_close(parts[0].loss + parts[1].loss, whole.loss)
    gradients = [torch.autograd.grad(outcome.loss, weights) for outcome in (whole, *parts)]
    for all_at_once, first, second in zip(*gradients, strict=True):
        torch.testing.assert_close((first + second).to_dense(), all_at_once.to_dense(), rtol=1e-4, atol=1e-4)
