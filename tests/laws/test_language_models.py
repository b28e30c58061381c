"""Laws that every whole language model keeps, counted or learned, at toy size."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.core.sequences import Tokens
from regard.core.state import State, select_rows
from regard.core.tape import Tape
from regard.recipes.catalogue import RECIPES, recipe
from tests.apps.toys import toy

VOCABULARY, ROWS, END = 13, 3, 3
LANGUAGE_MODELS = [name for name in RECIPES if recipe(name).task.kind() == "continuation"]
every_language_model = pytest.mark.parametrize("name", LANGUAGE_MODELS)
_built: dict[str, torch.nn.Module] = {}


def model_of(name: str) -> torch.nn.Module:
    """Built once: none of the laws changes it."""
    if name not in _built:
        torch.manual_seed(0)
        model = toy(name).model.build({"text": VOCABULARY}).eval().double()
        for parameter in model.parameters():  # nothing may hide behind a zero bias
            parameter.data += 0.1 * torch.randn_like(parameter)
        if hasattr(model, "learn"):
            text = np.random.default_rng(0).integers(END + 1, VOCABULARY, 400)
            text[99::100] = END
            model.learn(text, np.arange(0, 401, 100))
        _built[name] = model
    return _built[name]


def text_of(rows: int, time: int, seed: int = 1) -> Tensor:
    dice = torch.Generator().manual_seed(seed)
    return torch.randint(END + 1, VOCABULARY, (rows, time), generator=dice)


def log_probs(
    model: torch.nn.Module, ids: Tensor, real: Tensor | None = None, cuts: tuple[int, ...] = ()
) -> tuple[Tensor, State]:
    """Of every next token, the text read in the pieces given by ``cuts``."""
    real = torch.ones_like(ids, dtype=torch.bool) if real is None else real
    state, found = model.start(len(ids)), []
    for begin, end in pairwise((0, *cuts, ids.shape[1])):
        x, state = model.read(Tokens(ids[:, begin:end], real[:, begin:end]), state)
        found.append(model.predict(x).log_softmax(-1))
    return torch.cat(found, dim=1), state


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-7)


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@every_language_model
@given(time=st.integers(2, 9), data=st.data())
def test_chunk_law_whole_equals_pieces_equals_steps(name: str, time: int, data: st.DataObject) -> None:
    cuts = tuple(sorted(data.draw(st.sets(st.integers(1, time - 1), max_size=3))))
    model, ids = model_of(name), text_of(ROWS, time)
    whole, _ = log_probs(model, ids)
    close(log_probs(model, ids, cuts=cuts)[0], whole)
    state = model.start(ROWS)
    for at in range(time):
        stepped, state = model.step(ids[:, at], state)
        close(stepped, whole[:, at])


@every_language_model
@given(time=st.integers(2, 9), data=st.data())
def test_future_law_later_tokens_leave_earlier_predictions_alone(
    name: str, time: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, time - 1))
    model, ids = model_of(name), text_of(ROWS, time)
    changed = torch.cat((ids[:, :at], text_of(ROWS, time - at, seed=2)), dim=1)
    close(log_probs(model, changed)[0][:, :at], log_probs(model, ids)[0][:, :at])


@every_language_model
@given(lengths=st.lists(st.integers(1, 6), min_size=ROWS, max_size=ROWS))
def test_batch_law_a_row_alone_equals_the_row_in_a_batch(name: str, lengths: list[int]) -> None:
    """Padded rows, then more of each: padding leaves no trace in what comes after it."""
    model, first, more = model_of(name), text_of(ROWS, 6), text_of(ROWS, 3, seed=2)
    real = torch.arange(9)[None] < torch.tensor(lengths)[:, None]
    real[:, 6:] = True
    together, _ = log_probs(model, torch.cat((first, more), dim=1), real, cuts=(6,))
    for row, length in enumerate(lengths):
        one = slice(row, row + 1)
        alone, _ = log_probs(model, torch.cat((first[one, :length], more[one]), dim=1))
        close(together[row, :length], alone[0, :length])
        close(together[row, 6:], alone[0, length:])


@every_language_model
@given(rows=st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=5))
def test_rows_law_reordering_the_state_reorders_the_answers(name: str, rows: list[int]) -> None:
    model, chosen, now = model_of(name), torch.tensor(rows), text_of(ROWS, 1, seed=2)[:, 0]
    _, state = log_probs(model, text_of(ROWS, 5))
    expected, _ = model.step(now, state)
    close(model.step(now[chosen], select_rows(state, chosen))[0], expected[chosen])


@every_language_model
def test_tape_law_watching_changes_nothing_and_weights_are_weights(name: str) -> None:
    model, ids = model_of(name), text_of(ROWS, 7)
    unwatched, _ = log_probs(model, ids)
    with Tape(model) as tape:
        watched, _ = log_probs(model, ids)
    close(watched, unwatched)
    for (weights,) in tape.ending_with("weights").values():
        close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        assert (weights.triu(1) == 0).all(), "no position sees a later one"


@every_language_model
def test_probabilities_sum_to_one(name: str) -> None:
    found, _ = log_probs(model_of(name), text_of(ROWS, 5))
    close(found.exp().sum(-1), torch.ones(ROWS, 5).double())
