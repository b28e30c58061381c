"""Interventions do what their words say, in a whole reading and token by token."""

import math

import pytest
import torch

from regard.core import masks
from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline, Tokens
from regard.core.tape import Tape
from regard.inspection.interventions import Intervention, edits_of
from regard.inspection.trace import Trace, trace_writing
from regard.models.sequence_to_sequence import SequenceToSequence
from regard.tasks.task import Written

from . import small

LOOKING = "decoder.stack.layers.0.mixers.1"


def written(model: SequenceToSequence) -> Written:
    source = Tokens.pad([small.SOURCE], 0)
    ids = [small.BEGIN, *small.TARGET, small.END]
    return Written(lambda: model.start(source), small.SOURCE_PIECES, ids, ["x", "▁y", "z"])


def changed(model: SequenceToSequence, *interventions: Intervention) -> Trace:
    return trace_writing(model, written(model), edits_of(interventions))


def weights(trace: Trace, name: str) -> torch.Tensor:
    return torch.from_numpy(next(seen.weights for seen in trace.attentions if seen.name == name))


def test_a_head_that_is_off_looks_at_nothing_and_the_others_stay() -> None:
    model = small.transformer()
    before, after = (
        weights(changed(model, *some), LOOKING) for some in ((), (Intervention("off", LOOKING, (1,)),))
    )
    assert not after[1].any()
    assert torch.equal(after[0], before[0])
    assert changed(model, Intervention("off", LOOKING, (1,))).log_probs != changed(model).log_probs


def test_a_head_that_is_off_adds_nothing_to_the_output() -> None:
    """By hand: with all heads off an attention gives its output bias, whatever it is asked."""
    attention = small.transformer().decoder.stack.layers[0].mixers[1].eval()  # type: ignore[index, union-attr, operator]
    memory = torch.randn(1, 4, attention.project.in_features)
    state = attention.start(1, Memory(memory, torch.ones(1, 4, dtype=torch.bool)))
    timeline = Timeline.follow(None, torch.ones(1, 2, dtype=torch.bool), masks.causal)
    with Tape(attention, {"weights": Intervention("off", "").edit()}):
        found, _ = attention(torch.randn(1, 2, attention.width), timeline, state)
    torch.testing.assert_close(found, attention.out.bias.expand_as(found))


def test_uniform_attention_is_uniform_over_what_may_be_seen() -> None:
    model, itself = small.transformer(), "decoder.stack.layers.0.mixers.0"
    after = weights(changed(model, Intervention("uniform", itself)), itself)
    for row in range(after.shape[1]):
        torch.testing.assert_close(
            after[:, row, : row + 1], torch.full((after.shape[0], row + 1), 1 / (row + 1))
        )
        assert not after[:, row, row + 1 :].any()


@pytest.mark.parametrize("make", [small.transformer, small.looking_first], ids=["whole", "token by token"])
def test_attention_goes_where_it_was_drawn(make: object) -> None:
    model = make()  # type: ignore[operator]
    name = LOOKING if make is small.transformer else "decoder.stack.layers.0.mixers.0"
    drawn = Intervention("drawn", name, (0,), row=2, weights=(0.0, 3.0, 1.0))
    before, after = weights(changed(model), name), weights(changed(model, drawn), name)
    torch.testing.assert_close(after[0, 2, :3], torch.tensor([0.0, 0.75, 0.25]), atol=1e-6, rtol=0)
    torch.testing.assert_close(after[0, :2], before[0, :2])
    torch.testing.assert_close(after[0, 2].sum(), torch.tensor(1.0))


def test_a_drawing_holds_in_a_search_as_in_a_whole_reading() -> None:
    model = small.transformer().eval()
    drawn = Intervention("drawn", LOOKING, (), row=1, weights=(1.0,))
    whole = changed(model, drawn).log_probs
    said = []
    with torch.no_grad(), Tape(model, edits_of([drawn]), keeps=False):
        state = model.start(Tokens.pad([small.SOURCE], 0))
        for token, following in zip([small.BEGIN, *small.TARGET], [*small.TARGET, small.END], strict=True):
            log_probs, state = model.step(torch.tensor([token]), state)
            said.append(float(log_probs[0, following]))
    assert said == pytest.approx(whole, abs=1e-5)


def test_a_residual_that_is_cut_leaves_the_sublayer_alone() -> None:
    model, name = small.transformer().eval(), "encoder.stack.layers.0.joins.0"
    with Tape(model, edits_of([Intervention("cut", name)])) as tape, torch.no_grad():
        model.start(Tokens.pad([small.SOURCE], 0))
    assert not tape[f"{name}.residual"][0].any()


def test_words_without_positions_are_a_bag() -> None:
    """Whoever is not told where words stand gives each word the same vector in any order."""
    model = small.transformer().eval()
    ids = torch.tensor([small.SOURCE])
    lost = [Intervention("lost", "encoder.embedding")]
    with torch.no_grad(), Tape(model.encoder, {"embedding.positions": lost[0].edit()}):
        forward, backward = (model.encoder(Tokens.whole(some)).states for some in (ids, ids.flip(1)))
    torch.testing.assert_close(forward, backward.flip(1), atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        assert not torch.allclose(model.encoder(Tokens.whole(ids)).states, forward)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"do": "of", "name": "x"}, "no intervention 'of' .did you mean 'off'"),
        ({"do": "off"}, "not an intervention"),
        ({"do": "drawn", "name": "x", "weights": [0, 0]}, "not all zero"),
        ({"do": "drawn", "name": "x", "weights": [-1, 2]}, "none negative"),
        ({"do": "off", "name": "x", "heads": ["a"]}, "not an intervention"),
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Intervention.from_dict(said)


def test_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="has heads 0 to 1, not 7"):
        changed(small.transformer(), Intervention("off", LOOKING, (7,)))


def test_interventions_survive_json() -> None:
    for one in (Intervention("drawn", "a", (1,), 2, (0.5, 1.0)), Intervention("cut", "b")):
        assert Intervention.from_dict(one.to_dict()) == one
    assert math.isclose(
        sum(Intervention.from_dict({"do": "drawn", "name": "a", "weights": [1, 3]}).weights), 4
    )
