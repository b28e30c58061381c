"""A trace shows what the model really did, and survives being written down."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.core.tape import Tape
from regard.inspection.packing import pack, unpack
from regard.inspection.trace import Trace
from regard.models.sequence_to_sequence import SequenceToSequence

from . import small

LOOKING: dict[str, Callable[[], SequenceToSequence]] = {
    "transformer": small.transformer,
    "look then step": small.looking_first,
    "step then look": lambda: small.looking_after(feeding=True),
    "step then look, unfed": lambda: small.looking_after(feeding=False),
    "convolution": small.convolutional,
}


@pytest.fixture(params=LOOKING)
def model(request: pytest.FixtureRequest) -> SequenceToSequence:
    return LOOKING[request.param]()


@torch.no_grad()
def step_by_step(model: SequenceToSequence) -> tuple[Tape, list[float]]:
    """Write the target as a search would, one token after another."""
    model.eval()
    log_probs = []
    with Tape(model) as tape:
        state = model.start(Tokens.pad([small.SOURCE], 0))
        for token, following in zip([small.BEGIN, *small.TARGET], [*small.TARGET, small.END], strict=True):
            scores, state = model.step(torch.tensor([token]), state)
            log_probs.append(float(scores[0, following]))
    return tape, log_probs


def test_a_whole_reading_shows_what_writing_token_by_token_looked_at(model: SequenceToSequence) -> None:
    trace = small.trace_of(model)
    tape, log_probs = step_by_step(model)
    looking = [name for name in tape.ending_with("weights") if name.startswith("decoder")]
    assert [f"{seen.name}.weights" for seen in trace.attentions if seen.part == "decoder"] == looking
    for seen in trace.attentions:
        if seen.part == "decoder":
            for row, weights in enumerate(tape[f"{seen.name}.weights"]):
                there = weights.shape[-1]
                np.testing.assert_allclose(seen.weights[:, row, :there], weights[0, :, 0], atol=1e-6)
                assert not seen.weights[:, row, there:].any()
    np.testing.assert_allclose(trace.log_probs, log_probs, atol=1e-5)


def test_rows_sum_to_one_and_nothing_looks_ahead(model: SequenceToSequence) -> None:
    trace = small.trace_of(model)
    assert trace.attentions
    for seen in trace.attentions:
        np.testing.assert_allclose(seen.weights.sum(-1), 1.0, atol=1e-6)
        if seen.part == "decoder" and seen.looks_at == "itself":
            assert not np.triu(seen.weights, k=1).any()


def test_names_say_who_looked_at_what() -> None:
    trace = small.trace_of(small.transformer())
    assert trace.source == tuple(small.SOURCE_PIECES)
    assert trace.predictions == ("x", "▁y", "z", "⟨end⟩")
    assert [(seen.part, seen.layer, seen.mixer, seen.looks_at, seen.heads) for seen in trace.attentions] == [
        ("encoder", 0, 0, "itself", 3),
        ("encoder", 1, 0, "itself", 3),
        ("decoder", 0, 0, "itself", 3),
        ("decoder", 0, 1, "memory", 2),
        ("decoder", 1, 0, "itself", 3),
        ("decoder", 1, 1, "memory", 2),
    ]
    encoder, itself, memory = trace.attentions[0], trace.attentions[2], trace.attentions[3]
    assert encoder.rows == encoder.columns == trace.source
    assert (itself.rows, itself.columns) == (trace.predictions, ("⟨begin⟩", "x", "▁y", "z"))
    assert (memory.rows, memory.columns) == (trace.predictions, trace.source)
    assert memory.name == "decoder.stack.layers.0.mixers.1"


def test_layers_that_share_weights_are_seen_one_by_one() -> None:
    shared, separate = small.transformer(shared=True), small.transformer()
    separate.load_state_dict(shared.state_dict())
    for one, other in zip(
        small.trace_of(shared).attentions, small.trace_of(separate).attentions, strict=True
    ):
        assert (one.name, one.layer, one.mixer) == (other.name, other.layer, other.mixer)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)


def test_dropout_leaves_no_trace() -> None:
    model = small.transformer()
    plain = small.trace_of(model)
    model.train()
    model.encoder.eval()
    assert small.trace_of(model).to_json() == plain.to_json()
    assert (model.decoder.training, model.encoder.training) == (True, False)


def test_ends_are_named_where_there_are_any() -> None:
    model = small.looking_first()
    source = Tokens.pad([[*small.SOURCE, small.END]], 0)
    read = [*small.SOURCE_PIECES, "⟨end⟩"]
    trace = small.trace_pair(model, source, [small.BEGIN, *small.TARGET], read, small.TARGET_PIECES)
    assert trace.source == tuple(read)
    assert not trace.ended
    assert trace.predictions == trace.target == tuple(small.TARGET_PIECES)
    assert trace.attentions[0].weights.shape == (1, 3, 6)


def test_a_model_without_attention_has_probabilities_only() -> None:
    trace = small.trace_of(small.bottleneck())
    assert trace.attentions == ()
    assert len(trace.log_probs) == 4


@pytest.mark.parametrize(
    ("target", "message"), [([2], "nothing was written"), ([2, 11, 12, 3], "3 tokens, but 0 pieces")]
)
def test_what_does_not_fit_is_refused(target: list[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        small.trace_pair(small.looking_first(), Tokens.pad([[5, 6]], 0), target, ["a", "b"], [])


# ---------------------------------------------------------------- written down


def test_json_keeps_every_bit() -> None:
    trace = small.trace_of(small.transformer())
    again = Trace.from_json(trace.to_json())
    assert (again.source, again.target, again.ended) == (trace.source, trace.target, trace.ended)
    assert again.log_probs == trace.log_probs
    for one, other in zip(again.attentions, trace.attentions, strict=True):
        assert one.to_dict() == other.to_dict()
        np.testing.assert_array_equal(one.weights, other.weights)


def test_bytes_are_off_by_half_a_step_of_the_row_at_most() -> None:
    random = np.random.default_rng(0)
    weights = (random.random((3, 5, 700)) ** 9).astype(np.float32)
    weights /= weights.sum(-1, keepdims=True)
    weights[1, 2] = 0.0
    error = np.abs(unpack(json.loads(json.dumps(pack(weights, "uint8")))) - weights)
    assert (error <= weights.max(-1, keepdims=True) / 509).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, r"x\.json: expected 'regard\.trace' version 1, got 'regard\.trace' version 2"),
        ({"format": None}, "got None version 1"),
        ({"source": ...}, "the field 'source' is missing"),
    ],
)
def test_another_format_is_refused(change: dict[str, object], message: str) -> None:
    values = small.trace_of(small.looking_first()).to_dict() | change
    text = json.dumps({name: value for name, value in values.items() if value is not ...})
    with pytest.raises(DataError, match=message):
        Trace.from_json(text, "x.json")


def test_damaged_weights_are_refused() -> None:
    def damaged(**changes: object) -> str:
        values = small.trace_of(small.looking_first()).to_dict()
        values["attentions"][0]["weights"] |= changes
        return json.dumps(values)

    with pytest.raises(DataError, match="not an array of weights"):
        Trace.from_json(damaged(data="AAAA"))
    with pytest.raises(DataError, match="4 rows and 5 columns are named, but weights are"):
        Trace.from_json(damaged(shape=[1, 5, 4]))
    with pytest.raises(DataError, match="expected 'float32', 'float16' or 'uint8', got 'float8'"):
        Trace.from_json(damaged(encoding="float8"))
    with pytest.raises(DataError, match=r"trace:1: not JSON"):
        Trace.from_json("{")
