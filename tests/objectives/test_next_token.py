"""The loss of a translation is what stepping through it costs, and padding is free."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.core.sequences import Tokens
from regard.models.sequence_to_sequence import SequenceToSequence
from regard.objectives.forcing import FreeRunningSpec, ScheduledSamplingSpec
from regard.objectives.next_token import NextTokenSpec, shifted
from regard.objectives.objective import ObjectiveSpec
from tests.models.small import MODELS
from tests.objectives.pairs import (
    PADDING,
    PAIRS,
    SOURCE_ROWS,
    SOURCES,
    TARGET_ROWS,
    TARGETS,
    Pairs,
    build,
    cost,
    every_model,
)


def stepped(model: SequenceToSequence) -> list[tuple[Tensor, int]]:
    """Log-probabilities of everything that could follow and what does, row by row without any padding."""
    found = []
    for source, target in zip(SOURCE_ROWS, TARGET_ROWS, strict=True):
        state = model.start(Tokens.whole(torch.tensor([source])))
        for word, following in pairwise(target):
            log_probs, state = model.step(torch.tensor([word]), state)
            found.append((log_probs[0].detach(), following))
    return found


@every_model
def test_the_loss_is_minus_the_log_probability_of_the_target(name: str) -> None:
    model = build(name)
    outcome = cost(model)
    assert outcome.count == 3 + 5 + 1
    assert outcome.loss.item() == pytest.approx(-sum(lp[word].item() for lp, word in stepped(model)))


@every_model
@pytest.mark.parametrize("smoothing", [0.1, 0.7])
def test_smoothing_spreads_a_share_over_the_vocabulary(name: str, smoothing: float) -> None:
    """−Σ_v q(v) log p(v) with q = (1−ε) δ + ε/V (Szegedy et al. 2016, section 7)."""
    model, expected = build(name), 0.0
    for log_probs, word in stepped(model):
        for candidate in range(TARGETS):
            share = smoothing / TARGETS + (1 - smoothing) * (candidate == word)
            expected -= share * log_probs[candidate].item()
    outcome = cost(model, smoothing=smoothing)
    assert outcome.loss.item() == pytest.approx(expected)
    assert outcome.count == 9


@given(more_source=st.integers(0, 3), more_target=st.integers(0, 3), junk=st.integers(0, 10))
def test_padding_does_not_count(more_source: int, more_target: int, junk: int) -> None:
    """Neither in the loss, nor in the count, nor in the gradient, whatever stands on it."""
    model = build("transformer")

    def padded(tokens: Tokens, more: int) -> Tokens:
        ids = torch.cat((tokens.ids.masked_fill(~tokens.real, junk), torch.full((3, more), junk)), dim=1)
        return Tokens(ids, torch.cat((tokens.real, torch.zeros(3, more).bool()), dim=1))

    def gradients(pairs: Pairs) -> tuple[Tensor, ...]:
        outcome = cost(model, pairs)
        assert outcome.count == 9
        return (outcome.loss, *torch.autograd.grad(outcome.loss, tuple(model.parameters())))

    noisy = Pairs(padded(PAIRS.source, more_source), padded(PAIRS.target, more_target))
    torch.testing.assert_close(gradients(noisy), gradients(PAIRS))


@every_model
def test_a_batch_costs_the_sum_of_its_rows(name: str) -> None:
    model = build(name)
    alone = [
        cost(model, Pairs(Tokens.pad([source], PADDING), Tokens.pad([target], PADDING))).loss.item()
        for source, target in zip(SOURCE_ROWS, TARGET_ROWS, strict=True)
    ]
    assert cost(model).loss.item() == pytest.approx(sum(alone))


def test_what_is_given_and_what_is_wanted() -> None:
    given_tokens, wanted = shifted(PAIRS.target)
    for row, target in enumerate(TARGET_ROWS):
        assert given_tokens.ids[row][given_tokens.real[row]].tolist() == target[:-1]
        assert wanted.ids[row][wanted.real[row]].tolist() == target[1:]
    assert torch.equal(given_tokens.real, wanted.real)


def test_validation_asks_for_the_plain_loss() -> None:
    spec = NextTokenSpec(smoothing=0.3, forcing=FreeRunningSpec())
    assert spec.for_validation() == NextTokenSpec()


def test_the_spec_goes_to_yaml_and_back() -> None:
    spec = NextTokenSpec(smoothing=0.3, forcing=ScheduledSamplingSpec(decay="exponential", rate=0.99))
    assert ObjectiveSpec.from_yaml(spec.to_yaml()) == spec
    assert spec.to_dict()["kind"] == "next_token"
    assert spec.forcing.to_dict()["kind"] == "scheduled"


@every_model
def test_two_readings_without_dropout_cost_what_one_costs(name: str) -> None:
    model = build(name)
    once, twice = cost(model, smoothing=0.1), cost(model, smoothing=0.1, agreement=5.0)
    assert twice.loss.item() == pytest.approx(once.loss.item())
    assert twice.count == once.count


def test_two_readings_with_dropout_pay_for_how_much_they_disagree() -> None:
    spec = MODELS["transformer"].override(["decoder.embedding.dropout=0.5"])
    model = spec.build({"source": SOURCES, "target": TARGETS}).train()

    def at(agreement: float) -> float:
        torch.manual_seed(0)
        return cost(model, agreement=agreement).loss.item()

    free, one, two = at(1e-9), at(1.0), at(2.0)
    assert one > free + 1e-3
    assert two - one == pytest.approx(one - free, rel=1e-4)
