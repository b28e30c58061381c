"""What a teacher finds likely has its share of what is wanted, step by step; the teacher stays as it is."""

import pytest
import torch

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.core.state import tensors_of, with_tensors
from regard.models.mixture import Mixture
from regard.models.sequence_to_sequence import SequenceToSequence
from regard.objectives.next_token import NextTokenSpec, shifted
from regard.objectives.objective import Outcome
from regard.objectives.replaced_tokens import ReplacedTokensSpec
from regard.objectives.running_text import RunningTextSpec
from regard.objectives.teaching import Teaching
from tests.objectives.pairs import PADDING, PAIRS, SOURCE_ROWS, START, Pairs, build, cost, every_model
from tests.objectives.test_next_token import stepped
from tests.objectives.test_running_text import model_of, piece

RECURRENT = "recurrent, looking first"


def taught(model: SequenceToSequence, teaching: Teaching, **fields: object) -> Outcome:
    return NextTokenSpec(**fields).build().taught_by(teaching)(model, PAIRS, START)


@every_model
@pytest.mark.parametrize("share", [0.4, 1.0])
@pytest.mark.parametrize("agreement", [0.0, 3.0])
def test_the_cost_is_that_of_stepping_through_both(name: str, share: float, agreement: float) -> None:
    """(1−λ) −log p(y) − λ Σ a log p; two readings without dropout cost what one costs."""
    model, teacher = build(name), build(RECURRENT if name != RECURRENT else "transformer")
    expected = 0.0
    for (log_probs, word), (advice, _) in zip(stepped(model), stepped(teacher), strict=True):
        expected -= float((1 - share) * log_probs[word] + share * (advice.exp() * log_probs).sum())
    found = taught(model, Teaching(teacher, share), agreement=agreement)
    assert found.loss.item() == pytest.approx(expected)
    assert found.count == cost(model).count


@every_model
def test_who_learns_from_itself_alone_stands_still(name: str) -> None:
    model = build(name)
    outcome = taught(model, Teaching(model, 1.0))
    for slope in torch.autograd.grad(outcome.loss, tuple(model.parameters()), allow_unused=True):
        assert slope is None or slope.abs().max() < 1e-12


def test_several_teachers_teach_their_mean() -> None:
    model, one, other = (build(name) for name in ("transformer", RECURRENT, "convolutions"))
    both = taught(model, Teaching(Mixture([one, other]).double(), 1.0)).loss
    each = [taught(model, Teaching(teacher, 1.0)).loss for teacher in (one, other)]
    torch.testing.assert_close(both, (each[0] + each[1]) / 2)


def test_a_teacher_may_expect_a_token_in_front() -> None:
    model, teacher = build("transformer"), build(RECURRENT)
    front = [[9, *source] for source in SOURCE_ROWS]
    opened = Pairs(Tokens.pad(front, PADDING), PAIRS.target)
    with_front = taught(model, Teaching(teacher, 1.0, opening=9)).loss
    given, wanted = shifted(PAIRS.target)
    advice, _ = Teaching(teacher, 1.0).advice(given, teacher.start(opened.source), wanted.real)
    hidden, _ = model.read(given, model.start(PAIRS.source))
    expected = -(advice.probabilities * model.predict(hidden)[wanted.real].log_softmax(-1)).sum()
    torch.testing.assert_close(with_front, expected)
    without = taught(model, Teaching(teacher, 1.0)).loss
    assert with_front.item() != pytest.approx(without.item())


def test_a_teacher_learns_nothing_and_keeps_nothing() -> None:
    model, teacher = build("transformer"), build(RECURRENT)
    given, wanted = shifted(PAIRS.target)
    teaching = Teaching(teacher, 0.5)
    advice, state = teaching.advice(given, teaching.read(PAIRS.source), wanted.real)
    assert not any(tensor.requires_grad for tensor in (advice.probabilities, *tensors_of(state)))
    slopes = torch.autograd.grad(taught(model, teaching).loss, tuple(teacher.parameters()), allow_unused=True)
    assert all(slope is None for slope in slopes)


@torch.no_grad()
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_teacher_goes_along_with_text_that_runs_on(share: float) -> None:
    """In pieces both know what came before: the cost is that of the whole, and the readable one."""
    model, teacher = model_of("char_lm"), model_of("rnn_lm")
    objective = RunningTextSpec().build().taught_by(Teaching(teacher, share))
    whole = piece(0, 24)
    (x, _), (y, _) = (each.read(whole.given, each.start(3)) for each in (model, teacher))
    log_p, advice = model.predict(x).log_softmax(-1), teacher.predict(y).softmax(-1)
    right = log_p.gather(-1, whole.wanted[..., None]).sum()
    expected = -(1 - share) * right - share * (advice * log_p).sum()
    carried, costs = None, []
    for begin, end in ((0, 7), (7, 8), (8, 24)):
        if carried is not None:  # as a checkpoint has it
            form = objective.form_of_carried(model)
            carried = with_tensors(form, [tensor.clone() for tensor in tensors_of(carried)])
        outcome = objective(model, piece(begin, end), START, carried)
        carried = outcome.carried
        costs.append(float(outcome.loss))
    assert sum(costs) == pytest.approx(float(expected), rel=1e-9)


def test_validation_knows_no_teacher() -> None:
    model = build("transformer")
    plain = NextTokenSpec(smoothing=0.1).for_validation().build()
    assert plain(model, PAIRS, START).loss.item() == pytest.approx(cost(model).loss.item())


def test_what_has_no_next_word_has_no_teacher() -> None:
    with pytest.raises(UsageError, match="--taught-by is for models that say which word follows"):
        ReplacedTokensSpec().build().taught_by(Teaching(build(RECURRENT), 0.5))
