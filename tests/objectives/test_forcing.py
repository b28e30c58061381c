"""What a decoder is fed while it learns: the truth, its own words, or a mixture."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from regard.core.sequences import Tokens
from regard.models.sequence_to_sequence import SequenceToSequence
from regard.objectives.forcing import (
    ForcingSpec,
    FreeRunningSpec,
    ScheduledSamplingSpec,
    TeacherForcingSpec,
    read_mixture,
)
from regard.objectives.next_token import shifted
from regard.objectives.objective import Progress
from tests.models.small import MODELS
from tests.objectives.pairs import BEGIN, PAIRS, START, build, cost, every_model

GIVEN, _ = shifted(PAIRS.target)
ALWAYS_TRUTH = ScheduledSamplingSpec(least=1.0)
NEVER_TRUTH = ScheduledSamplingSpec(steps=5)
LATE = Progress(step=5, epoch=0, seed=0)  # where NEVER_TRUTH has reached zero


def fed(spec: ForcingSpec, model: SequenceToSequence, given: Tokens = GIVEN, at: Progress = START) -> Tensor:
    with torch.no_grad():
        return spec.build()(model, given, model.start(PAIRS.source), at)


# ---------------------------------------------------------------- the schedules


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        (ScheduledSamplingSpec(steps=10), {0: 1.0, 1: 0.9, 5: 0.5, 10: 0.0, 11: 0.0, 1000: 0.0}),
        (ScheduledSamplingSpec(steps=10, least=0.25), {0: 1.0, 5: 0.5, 8: 0.25, 99: 0.25}),
        (ScheduledSamplingSpec(decay="exponential", rate=0.5), {0: 1.0, 1: 0.5, 2: 0.25, 10: 1 / 1024}),
        (ScheduledSamplingSpec(decay="exponential", rate=0.5, least=0.3), {1: 0.5, 2: 0.3}),
        (
            ScheduledSamplingSpec(decay="inverse_sigmoid", steps=10),
            {0: 10 / 11, 10: 10 / (10 + math.e), 20: 10 / (10 + math.e**2), 10**6: 0.0},
        ),
    ],
)
def test_the_share_of_truth_falls_as_it_should(spec: ScheduledSamplingSpec, values: dict[int, float]) -> None:
    for step, share in values.items():
        assert spec.truth(step) == pytest.approx(share, abs=1e-12)


def test_the_inverse_sigmoid_is_half_where_its_exponential_equals_k() -> None:
    k = 7
    spec = ScheduledSamplingSpec(decay="inverse_sigmoid", steps=k)
    half = k * math.log(k)
    assert spec.truth(math.floor(half)) > 0.5 > spec.truth(math.ceil(half))


# ---------------------------------------------------------------- what is fed, seen by a model that tells


class Remembered(NamedTuple):
    ids: Tensor


class Parrot:
    """Remembers what it was fed and always guesses the same word."""

    def __init__(self, guess: int) -> None:
        self.guess = guess
        self.real: list[Tensor] = []

    def read(self, tokens: Tokens, state: Remembered) -> tuple[Tensor, Remembered]:
        self.real.append(tokens.real)
        return tokens.ids[..., None].double(), Remembered(torch.cat((state.ids, tokens.ids), dim=1))

    def predict(self, x: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(torch.full(x.shape[:-1], self.guess), 10).double()


def mixture(truth: float, rows: int = 400) -> Tensor:
    ids = torch.cat((torch.full((rows, 1), BEGIN), torch.full((rows, 5), 4)), dim=1)
    return read_mixture(Parrot(7), Tokens.whole(ids), Remembered(ids[:, :0]), truth)[..., 0]


def test_a_mixture_begins_with_begin_and_flips_a_coin_for_every_word() -> None:
    torch.manual_seed(0)
    words = mixture(0.3)
    assert (words[:, 0] == BEGIN).all()
    assert set(words[:, 1:].flatten().tolist()) == {4, 7}
    for column in words[:, 1:].T:  # 400 flips: three standard deviations are 0.07
        assert (column == 4).double().mean().item() == pytest.approx(0.3, abs=0.07)
    # Coins of one row are not one coin.
    assert 0 < ((words[:, 1:] == 4).sum(1) == 5).double().mean() < 0.05


def test_the_ends_of_the_mixture_are_exact() -> None:
    assert (mixture(1.0)[:, 1:] == 4).all()
    assert (mixture(0.0)[:, 1:] == 7).all()


def test_a_mixture_is_told_where_rows_end() -> None:
    parrot = Parrot(7)
    read_mixture(parrot, GIVEN, Remembered(GIVEN.ids[:, :0]), 0.5)
    assert torch.equal(torch.cat(parrot.real, dim=1), GIVEN.real)


# ---------------------------------------------------------------- with real models


@every_model
def test_scheduled_sampling_that_always_tells_the_truth_is_teacher_forcing(name: str) -> None:
    model = build(name)
    teacher = fed(TeacherForcingSpec(), model)
    torch.testing.assert_close(fed(ALWAYS_TRUTH, model)[GIVEN.real], teacher[GIVEN.real])
    teacher_loss, scheduled_loss = cost(model).loss, cost(model, forcing=ALWAYS_TRUTH).loss
    assert scheduled_loss.item() == pytest.approx(teacher_loss.item())


@every_model
def test_scheduled_sampling_that_never_tells_the_truth_is_free_running(name: str) -> None:
    model = build(name)
    torch.testing.assert_close(fed(NEVER_TRUTH, model, at=LATE), fed(FreeRunningSpec(), model))
    assert not torch.allclose(fed(NEVER_TRUTH, model), fed(FreeRunningSpec(), model))


@every_model
def test_free_running_feeds_the_models_own_best_words(name: str) -> None:
    """The hidden states are those of reading, whole, what greedy stepping writes."""
    model = build(name)
    state, tokens, written = model.start(PAIRS.source), torch.full((3,), BEGIN), []
    for _ in range(GIVEN.ids.shape[1]):
        written.append(tokens)
        log_probs, state = model.step(tokens, state)
        tokens = log_probs.argmax(-1)
    expected, _ = model.read(Tokens(torch.stack(written, dim=1), GIVEN.real), model.start(PAIRS.source))
    torch.testing.assert_close(fed(FreeRunningSpec(), model)[GIVEN.real], expected[GIVEN.real])


@every_model
def test_free_running_never_sees_the_target(name: str) -> None:
    model = build(name)
    others = GIVEN.ids.clone()
    others[:, 1:] = (others[:, 1:] + 3) % 11
    changed = Tokens(others, GIVEN.real)
    assert torch.equal(fed(FreeRunningSpec(), model, changed), fed(FreeRunningSpec(), model))
    assert not torch.allclose(fed(TeacherForcingSpec(), model, changed), fed(TeacherForcingSpec(), model))
    begun = Tokens(torch.cat((GIVEN.ids[:, :1] + 1, GIVEN.ids[:, 1:]), dim=1), GIVEN.real)
    assert not torch.allclose(fed(FreeRunningSpec(), model, begun), fed(FreeRunningSpec(), model))


FORCINGS: dict[str, ForcingSpec] = {
    "teacher": TeacherForcingSpec(),
    "scheduled": ScheduledSamplingSpec(least=0.5, steps=1),
    "free": FreeRunningSpec(),
}


@pytest.mark.parametrize("forcing", FORCINGS.values(), ids=FORCINGS)
@every_model
def test_gradient_reaches_every_parameter(name: str, forcing: ForcingSpec) -> None:
    model = build(name)
    model.zero_grad()
    cost(model, forcing=forcing, smoothing=0.1).loss.backward()
    idle = [key for key, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


def test_every_forcing_is_tried() -> None:
    assert set(FORCINGS) == set(ForcingSpec.kinds)
    assert len(MODELS) == 8
