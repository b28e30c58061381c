"""What every whole model keeps: whole = step by step, row = row in a batch, beams reorder its state."""

from copy import deepcopy
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.core.sequences import Tokens
from regard.core.state import concatenate_rows, repeat_rows, select_hypotheses, select_rows, tensors_of
from regard.core.tape import Tape
from regard.models.decoder import DecoderState
from regard.models.model import ModelSpec
from regard.models.sequence_to_sequence import SequenceToSequence
from regard.search.beam import BeamSpec
from tests.models.small import MODELS
from tests.models.torch_nn import randomise

SOURCES, TARGETS, PADDING = 13, 11, 0
every_model = pytest.mark.parametrize("name", MODELS)


@cache
def build(name: str) -> SequenceToSequence:
    torch.manual_seed(0)
    model = MODELS[name].build({"source": SOURCES, "target": TARGETS}).double().eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def rows(*lengths: int, words: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, words, (length,), generator=generator).tolist() for length in lengths]


SOURCE_ROWS = rows(5, 2, 7, words=SOURCES, seed=1)
TARGET_ROWS = rows(6, 6, 6, words=TARGETS, seed=2)
SOURCE, TARGET = Tokens.pad(SOURCE_ROWS, PADDING), Tokens.pad(TARGET_ROWS, PADDING)


def read(model: SequenceToSequence, source: Tokens, target: Tokens) -> Tensor:
    hidden, _ = model.read(target, model.start(source))
    return model.predict(hidden).log_softmax(-1)


def step_through(model: SequenceToSequence, state: DecoderState, ids: Tensor) -> tuple[Tensor, DecoderState]:
    steps = []
    for column in ids.T:
        log_probs, state = model.step(column, state)
        steps.append(log_probs)
    return torch.stack(steps, dim=1), state


@every_model
def test_reading_whole_is_reading_step_by_step(name: str) -> None:
    model = build(name)
    stepped, _ = step_through(model, model.start(SOURCE), TARGET.ids)
    torch.testing.assert_close(stepped, read(model, SOURCE, TARGET))
    torch.testing.assert_close(stepped.exp().sum(-1), torch.ones(3, 6).double())


@every_model
def test_a_prefix_may_be_read_at_once_and_continued(name: str) -> None:
    model = build(name)
    _, state = model.read(Tokens.pad([row[:4] for row in TARGET_ROWS], PADDING), model.start(SOURCE))
    continued, _ = step_through(model, state, TARGET.ids[:, 4:])
    torch.testing.assert_close(continued, read(model, SOURCE, TARGET)[:, 4:])


@every_model
def test_prefixes_of_different_lengths_may_be_continued_together(name: str) -> None:
    """A prefix may also be empty."""
    model, lengths = build(name), (4, 1, 0)
    prefixes = Tokens.pad([row[:n] for row, n in zip(TARGET_ROWS, lengths, strict=True)], PADDING)
    _, state = model.read(prefixes, model.start(SOURCE))
    continued, _ = step_through(model, state, TARGET.ids[:, 4:])
    for row, (words, length) in enumerate(zip(TARGET_ROWS, lengths, strict=True)):
        alone = Tokens.pad([words[:length] + words[4:]], PADDING)
        expected = read(model, Tokens.pad([SOURCE_ROWS[row]], PADDING), alone)
        torch.testing.assert_close(continued[row], expected[0, length:])


@every_model
def test_a_row_in_a_padded_batch_is_the_row_alone(name: str) -> None:
    model, lengths = build(name), (6, 1, 4)
    targets = [row[:n] for row, n in zip(TARGET_ROWS, lengths, strict=True)]
    together = read(model, SOURCE, Tokens.pad(targets, PADDING))
    for row, target in enumerate(targets):
        alone = read(model, Tokens.pad([SOURCE_ROWS[row]], PADDING), Tokens.pad([target], PADDING))
        torch.testing.assert_close(together[row, : len(target)], alone[0])


@every_model
def test_what_stands_on_padding_does_not_matter(name: str) -> None:
    model = build(name)
    noisy = Tokens(SOURCE.ids.masked_fill(~SOURCE.real, 3), SOURCE.real)
    assert torch.equal(read(model, noisy, TARGET), read(model, SOURCE, TARGET))


@every_model
def test_later_words_do_not_change_earlier_predictions(name: str) -> None:
    model = build(name)
    changed = Tokens.whole(TARGET.ids.clone())
    changed.ids[:, 3:] = changed.ids[:, 3:] % (TARGETS - 1) + 1
    before, after = read(model, SOURCE, TARGET), read(model, SOURCE, changed)
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 3:], before[:, 3:])


@every_model
@settings(max_examples=5)
@given(chosen=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_beams_reorder_repeat_and_drop_rows(name: str, chosen: list[int]) -> None:
    """After select_rows each row goes on as the one it was taken from."""
    model, index = build(name), torch.tensor(chosen)
    _, state = step_through(model, model.start(SOURCE), TARGET.ids[:, :3])
    expected, _ = step_through(model, state, TARGET.ids[:, 3:])
    got, _ = step_through(model, select_rows(state, index), TARGET.ids[index, 3:])
    torch.testing.assert_close(got, expected[index])


@every_model
def test_a_beam_grows_out_of_one_start_and_batches_join(name: str) -> None:
    model = build(name)
    expected = read(model, SOURCE, TARGET)
    beams, _ = step_through(model, repeat_rows(model.start(SOURCE), 2), TARGET.ids.repeat_interleave(2, 0))
    torch.testing.assert_close(beams, expected.repeat_interleave(2, 0))
    state = model.start(SOURCE)
    apart = [select_rows(state, torch.tensor([row])) for row in range(3)]
    joined, _ = step_through(model, concatenate_rows(apart), TARGET.ids)
    torch.testing.assert_close(joined, expected)


@every_model
def test_a_state_is_not_changed_by_being_used(name: str) -> None:
    """Two continuations of one state: nothing is written in place."""
    model = build(name)
    _, state = step_through(model, model.start(SOURCE), TARGET.ids[:, :3])
    once, _ = step_through(model, state, TARGET.ids[:, 3:])
    step_through(model, state, TARGET.ids[:, :3])
    again, _ = step_through(model, state, TARGET.ids[:, 3:])
    assert torch.equal(once, again)


@every_model
def test_the_source_is_seen(name: str) -> None:
    """Every real source word matters to every prediction."""
    model = deepcopy(build(name))
    randomise(model, seed=5)
    for place in range(2):
        changed = SOURCE.ids.clone()
        changed[:, place] = changed[:, place] % (SOURCES - 1) + 1
        difference = read(model, Tokens(changed, SOURCE.real), TARGET) - read(model, SOURCE, TARGET)
        assert (difference.abs().amax(-1) > 1e-9).all()


@every_model
def test_a_watched_model_computes_the_same(name: str) -> None:
    model = build(name)
    expected = read(model, SOURCE, TARGET)
    with Tape(model) as tape:
        watched = read(model, SOURCE, TARGET)
    torch.testing.assert_close(watched, expected)
    assert tape.records


def test_every_layer_and_head_of_a_transformer_can_be_seen_and_changed() -> None:
    model = build("transformer")
    with Tape(model) as tape:
        before = read(model, SOURCE, TARGET)
    shapes = {name: tuple(seen[0].shape) for name, seen in tape.ending_with("weights").items()}
    assert shapes == {
        "encoder.stack.layers.0.mixers.0.weights": (3, 3, 7, 7),
        "encoder.stack.layers.1.mixers.0.weights": (3, 3, 7, 7),
        "decoder.stack.layers.0.mixers.0.weights": (3, 3, 6, 6),
        "decoder.stack.layers.0.mixers.1.weights": (3, 3, 6, 7),
        "decoder.stack.layers.1.mixers.0.weights": (3, 3, 6, 6),
        "decoder.stack.layers.1.mixers.1.weights": (3, 3, 6, 7),
    }

    def without_head_1(weights: Tensor) -> Tensor:
        return torch.stack((weights[:, 0], torch.zeros_like(weights[:, 1]), weights[:, 2]), dim=1)

    with Tape(model, edits={"decoder.stack.layers.1.mixers.1.weights": without_head_1}):
        edited = read(model, SOURCE, TARGET)
    # A head is a block of columns of the output matrix: switched off, it is as if they were zero.
    cut = deepcopy(model)
    cut.decoder.stack.layers[1].mixers[1].out.weight.data[:, 4:8] = 0
    torch.testing.assert_close(edited, read(cut, SOURCE, TARGET))
    assert not torch.allclose(edited, before)


@every_model
def test_every_dropout_drops_in_training_only(name: str) -> None:
    spec = MODELS[name]
    expected = read(build(name), SOURCE, TARGET)
    for path in [path for path in spec.paths() if path.endswith(".dropout")]:
        model = spec.override([f"{path}=0.5"]).build({"source": SOURCES, "target": TARGETS}).double()
        model.load_state_dict(build(name).state_dict())
        torch.testing.assert_close(read(model.eval(), SOURCE, TARGET), expected)
        assert not torch.allclose(read(model.train(), SOURCE, TARGET), expected), path


@every_model
def test_a_model_spec_goes_to_json_and_back(name: str) -> None:
    spec = MODELS[name]
    assert ModelSpec.from_json(spec.to_json()) == spec
    torch.manual_seed(0)
    first = spec.build({"source": SOURCES, "target": TARGETS}).state_dict()
    torch.manual_seed(0)
    second = ModelSpec.from_yaml(spec.to_yaml()).build({"source": SOURCES, "target": TARGETS}).state_dict()
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@every_model
@pytest.mark.parametrize("watched", [False, True])
def test_hypotheses_share_what_belongs_to_their_sentence(name: str, watched: bool) -> None:
    """A beam keeps one memory for a sentence: two hypotheses each, then one is done, the rest reordered."""
    model = build(name)
    twice, rest = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 2])
    shared, apart = (select(model.start(SOURCE), twice) for select in (select_hypotheses, select_rows))
    places = torch.tensor([1, 0, 5, 5])
    with torch.no_grad():
        for tokens in (torch.tensor([3, 4, 5, 6, 7, 8]), torch.tensor([2, 2, 9, 1, 3, 3])):
            if watched:
                with Tape(model) as tape:
                    found, shared = model.step(tokens, shared)
                for seen in tape.ending_with("weights").values():
                    assert len(seen[-1]) == len(tokens)  # who watches sees every hypothesis by itself
            else:
                found, shared = model.step(tokens, shared)
            wanted, apart = model.step(tokens, apart)
            torch.testing.assert_close(found, wanted)
        shared, apart = select_hypotheses(shared, places, rest), select_rows(apart, places)
        found, _ = model.step(torch.tensor([4, 5, 6, 7]), shared)
        wanted, _ = model.step(torch.tensor([4, 5, 6, 7]), apart)
    torch.testing.assert_close(found, wanted)


def test_a_memory_is_neither_repeated_nor_copied_for_that() -> None:
    state = build("transformer").start(SOURCE)
    kept = {tensor.data_ptr() for tensor in tensors_of(state) if tensor.numel()}
    found = tensors_of(select_hypotheses(state, torch.tensor([0, 0, 1, 1, 2, 2])))
    assert sum(tensor.data_ptr() in kept for tensor in found if tensor.numel()) == 2 * 3  # layers, parts


@every_model
def test_a_step_where_nobody_learns_is_a_step(name: str) -> None:
    """Without gradients, quicker ways are taken: one token at a time, in place, by other formulas."""
    model = build(name)
    state = model.start(SOURCE)
    tokens = torch.tensor([3, 4, 5])
    hidden, _ = model.read(Tokens.whole(tokens[:, None]), state)
    wanted = model.predict(hidden[:, -1]).log_softmax(-1)
    torch.testing.assert_close(model.step(tokens, state)[0], wanted)
    with torch.no_grad():
        torch.testing.assert_close(model.step(tokens, model.start(SOURCE))[0], wanted)


@every_model
def test_a_beam_finds_for_a_sentence_alone_what_it_finds_in_a_batch(name: str) -> None:
    """Sentences are done at different times, and what is left goes on with its own memory."""
    model, longest = build(name), torch.tensor([2, 7, 4])
    search = BeamSpec(size=3, best=2).build()

    def found(rows: list[int]) -> list[list[list[int]]]:
        state = model.start(Tokens(SOURCE.ids[rows], SOURCE.real[rows]))
        first = torch.ones(len(rows), dtype=torch.long)
        return [[one.tokens for one in some] for some in search(model.step, state, first, 0, longest[rows])]

    assert found([0, 1, 2]) == [found([row])[0] for row in range(3)]
