"""Vectors of what stands around a word: they know all but the word, and tell it from others."""

import numpy as np
import pytest
import torch

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.data.text_batches import in_order
from regard.models.between import BEGIN, END, HIDDEN, UNKNOWN, Between
from regard.objectives.between import BetweenWordsSpec
from regard.objectives.objective import Progress
from regard.recipes.catalogue import recipe

VOCABULARY = 17


def model() -> Between:
    torch.manual_seed(0)
    spec = recipe("context2vec").model.override(
        [
            "encoder.embedding.width=6",
            "encoder.stack.blocks.0.mixers.0.cell.width=5",
            "encoder.stack.blocks.0.join.dropout=0",
            "hidden=7",
            "width=6",
        ]
    )
    made = spec.build({"text": VOCABULARY})
    assert isinstance(made, Between)
    made.meet(np.arange(VOCABULARY))
    return made


def test_knows_everything_around_a_word_and_not_the_word() -> None:
    made = model()
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    before = made.read(Tokens.whole(ids)).states
    for place in range(6):
        changed = ids.clone()
        changed[0, place] = 16
        after = made.read(Tokens.whole(changed)).states
        same = torch.isclose(before, after, atol=1e-7).all(-1)[0]
        assert bool(same[place]), "of itself it knows nothing"
        assert int(same.sum()) == 1, "all others have seen it"


def test_padding_changes_nothing() -> None:
    made = model()
    alone = made.read(Tokens.whole(torch.tensor([[5, 6, 7]]))).states
    padded = made.read(Tokens.pad([[5, 6, 7], [5, 6, 7, 8, 9]], 0)).states
    torch.testing.assert_close(padded[:1, :2], alone[:, :2])


def test_a_text_begins_where_another_ended_and_what_is_hidden_is_unknown() -> None:
    made = model()
    one = made.read(Tokens.whole(torch.tensor([[BEGIN, 6, HIDDEN, 8]]))).states
    other = made.read(Tokens.whole(torch.tensor([[END, 6, UNKNOWN, 8]]))).states
    torch.testing.assert_close(one, other)


def test_without_context_words_are_as_likely_as_they_are_frequent() -> None:
    made = model()
    weights = np.where(np.isin(np.arange(VOCABULARY), [0, 1, 2, 4]), 0, np.arange(VOCABULARY) ** 0.75)
    expected = torch.from_numpy(weights / weights.sum()).float()
    torch.testing.assert_close(made.predict(torch.zeros(6)).softmax(-1), expected)


def test_cost_is_that_of_the_definition() -> None:
    made = model()
    stream = np.array([3, 5, 6, 1, 8, 9, 3, 10, 11, 12, 3])
    (batch,) = in_order(stream, 10, 1, False)
    spec = BetweenWordsSpec(negatives=4, drawn=6)
    torch.manual_seed(7)
    outcome = spec.build()(made, batch, Progress(1, 0, 0))
    torch.manual_seed(7)
    noise = torch.multinomial(made.noise, 6, replacement=True).tolist()
    x = made.read(Tokens.whole(torch.from_numpy(stream)[None])).states[0]
    loss, count = 0.0, 0
    for place in range(1, 10):
        if stream[place] == UNKNOWN:
            continue
        count += 1
        loss -= float(torch.log(torch.sigmoid(made.words.weight[stream[place]] @ x[place])).detach())
        for other in noise:
            if other != stream[place]:
                loss -= 4 / 6 * float(torch.log(torch.sigmoid(-made.words.weight[other] @ x[place])).detach())
    assert outcome.count == count
    assert float(outcome.loss.detach()) == pytest.approx(loss, rel=1e-5)


def test_directions_may_not_meet() -> None:
    spec = recipe("context2vec").model.override(["encoder.stack.blocks.0.repeat=2"])
    with pytest.raises(UsageError, match="show words to themselves"):
        spec.build({"text": 9})
