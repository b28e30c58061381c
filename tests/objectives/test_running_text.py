"""Running text: state goes along, gradients do not."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from regard.core.sequences import Tokens
from regard.core.state import tensors_of, with_tensors
from regard.models.language_model import LanguageModel
from regard.objectives.objective import Progress
from regard.objectives.running_text import RunningTextSpec
from regard.recipes.catalogue import recipe

START = Progress(step=1, epoch=0, seed=1)
RUNNING = ["char_lm", "rnn_lm"]
TEXT = torch.randint(4, 30, (3, 25), generator=torch.Generator().manual_seed(1))


class Piece(NamedTuple):
    given: Tokens
    wanted: Tensor
    continues: bool


def piece(begin: int, end: int) -> Piece:
    return Piece(Tokens.whole(TEXT[:, begin:end]), TEXT[:, begin + 1 : end + 1], begin > 0)


def model_of(name: str) -> LanguageModel:
    torch.manual_seed(3)
    model: LanguageModel = recipe(name).model.build({"text": 30})  # type: ignore[assignment]
    return model.double().eval()


@torch.no_grad()
@pytest.mark.parametrize("name", ["char_lm", "rnn_lm", "gpt_tiny"])
def test_pieces_cost_what_the_whole_costs(name: str) -> None:
    model, objective = model_of(name), RunningTextSpec().build()
    whole = objective(model, piece(0, 24), START)
    carried, costs = None, []
    for begin, end in ((0, 7), (7, 8), (8, 24)):
        outcome = objective(model, piece(begin, end), START, carried)
        carried = outcome.carried
        costs.append(float(outcome.loss))
    assert sum(costs) == pytest.approx(float(whole.loss), rel=1e-9)
    assert whole.count == 72


@torch.no_grad()
def test_a_batch_that_begins_anew_forgets() -> None:
    model, objective = model_of("rnn_lm"), RunningTextSpec().build()
    left = objective(model, piece(0, 9), START).carried
    fresh = piece(9, 20)._replace(continues=False)
    assert float(objective(model, fresh, START, left).loss) == float(objective(model, fresh, START).loss)
    assert float(objective(model, piece(9, 20), START, left).loss) != float(
        objective(model, fresh, START).loss
    )


def test_no_gradient_crosses_from_one_batch_to_the_next() -> None:
    model, objective = model_of("rnn_lm"), RunningTextSpec().build()
    carried = objective(model, piece(0, 9), START).carried
    assert all(not tensor.requires_grad for tensor in tensors_of(carried))


@pytest.mark.parametrize("name", RUNNING)
def test_a_carried_state_comes_back_from_its_tensors(name: str) -> None:
    model, objective = model_of(name), RunningTextSpec().build()
    carried = objective(model, piece(0, 9), START).carried
    again = with_tensors(objective.form_of_carried(model), [t.clone() for t in tensors_of(carried)])
    expected = objective(model, piece(9, 20), START, carried)
    assert torch.equal(objective(model, piece(9, 20), START, again).loss, expected.loss)
    with pytest.raises(ValueError, match="0 tensors for a state of"):
        with_tensors(objective.form_of_carried(model), [])


@torch.no_grad()
def test_calm_outputs_cost_less_and_only_in_training() -> None:
    model = model_of("rnn_lm")
    spec = RunningTextSpec(small=2.0, slow=1.0)
    x, _ = model.read(piece(0, 9).given, model.start(3))
    extra = 2.0 * x.square().mean() + (x[:, 1:] - x[:, :-1]).square().mean()
    plain, calm = (s.build()(model, piece(0, 9), START) for s in (RunningTextSpec(), spec))
    assert float(calm.loss - plain.loss) == pytest.approx(27 * float(extra), rel=1e-9)
    assert float(spec.for_validation().build()(model, piece(0, 9), START).loss) == float(plain.loss)
