"""Laws that every mixer keeps, whatever it computes."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.core import masks
from regard.core.sequences import Memory, Past, Timeline
from regard.core.spec import Spec
from regard.core.state import State, select_rows
from regard.core.tape import Tape
from regard.mixers.mixer import Mixer, MixerSpec
from tests.laws.zoo import CAUSAL, MEMORY_WIDTH, MIXERS, WIDTH

SOURCE = 7
every_mixer = pytest.mark.parametrize("spec", MIXERS.values(), ids=MIXERS)
every_causal_mixer = pytest.mark.parametrize("spec", CAUSAL.values(), ids=CAUSAL)


def build(spec: MixerSpec, seed: int = 0) -> Mixer:
    torch.manual_seed(seed)
    mixer = spec.build(WIDTH, MEMORY_WIDTH).eval().double()
    for parameter in mixer.parameters():  # nothing may hide behind a zero bias
        parameter.data += 0.1 * torch.randn_like(parameter)
    return mixer


def memory_of(batch: int, seed: int = 1) -> Memory:
    states = torch.randn(batch, SOURCE, MEMORY_WIDTH, generator=torch.Generator().manual_seed(seed)).double()
    lengths = torch.arange(batch) % SOURCE + 1
    return Memory(states, torch.arange(SOURCE) < lengths[:, None])


def no_past(batch: int) -> Past:
    return Past.none(batch)


def run(
    mixer: Mixer, x: Tensor, memory: Memory, real: Tensor | None = None, cuts: tuple[int, ...] = ()
) -> tuple[Tensor, State]:
    """Read ``x`` in the pieces given by ``cuts``."""
    batch, time, _ = x.shape
    real = torch.ones(batch, time, dtype=torch.bool) if real is None else real
    state, past, outputs = mixer.start(batch, memory), no_past(batch), []
    visibility = masks.causal if mixer.causal else None
    edges = (0, *cuts, time)
    for begin, end in pairwise(edges):
        timeline = Timeline.follow(past, real[:, begin:end], visibility)
        y, state = mixer(x[:, begin:end], timeline, state)
        past = timeline.past
        outputs.append(y)
    return torch.cat(outputs, dim=1), state


def inputs(batch: int, time: int, seed: int = 2) -> Tensor:
    return torch.randn(batch, time, WIDTH, generator=torch.Generator().manual_seed(seed)).double()


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-10)


@every_causal_mixer
@given(time=st.integers(2, 9), data=st.data())
def test_chunk_law_whole_equals_pieces(spec: MixerSpec, time: int, data: st.DataObject) -> None:
    cuts = tuple(sorted(data.draw(st.sets(st.integers(1, time - 1), max_size=3))))
    mixer, x, memory = build(spec), inputs(3, time), memory_of(3)
    whole, _ = run(mixer, x, memory)
    pieces, _ = run(mixer, x, memory, cuts=cuts)
    close(pieces, whole)


@every_causal_mixer
@given(data=st.data())
def test_chunk_law_holds_with_padding_between_pieces(spec: MixerSpec, data: st.DataObject) -> None:
    """Rows of different lengths, then more: padding inside the sequence leaves no trace in the state."""
    lengths = torch.tensor(data.draw(st.lists(st.integers(1, 5), min_size=3, max_size=3)))
    mixer, memory = build(spec), memory_of(3)
    first, more = inputs(3, 5), inputs(3, 4, seed=3)
    real = torch.cat((torch.arange(5) < lengths[:, None], torch.ones(3, 4, dtype=torch.bool)), dim=1)
    together, _ = run(mixer, torch.cat((first, more), dim=1), memory, real, cuts=(5,))
    for row, length in enumerate(lengths.tolist()):
        alone = torch.cat((first[row : row + 1, :length], more[row : row + 1]), dim=1)
        expected, _ = run(mixer, alone, Memory(memory.states[row : row + 1], memory.real[row : row + 1]))
        close(together[row, 5:], expected[0, length:])


@every_causal_mixer
@given(time=st.integers(2, 9), data=st.data())
def test_future_law_later_inputs_leave_earlier_outputs_alone(
    spec: MixerSpec, time: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, time - 1))
    mixer, x, memory = build(spec), inputs(2, time), memory_of(2)
    changed = x.clone()
    changed[:, at:] += 1.0
    before, _ = run(mixer, x, memory)
    after, _ = run(mixer, changed, memory)
    close(after[:, :at], before[:, :at])


@every_mixer
@given(time=st.integers(1, 7), extra=st.integers(1, 4))
def test_padding_law_padding_changes_nothing(spec: MixerSpec, time: int, extra: int) -> None:
    mixer, x, memory = build(spec), inputs(3, time), memory_of(3)
    padded = torch.cat((x, torch.full((3, extra, WIDTH), 100.0).double()), dim=1)
    real = (torch.arange(time + extra) < time).expand(3, -1)
    expected, _ = run(mixer, x, memory)
    got, _ = run(mixer, padded, memory, real)
    close(got[:, :time], expected)


@every_mixer
def test_padding_law_holds_for_the_memory(spec: MixerSpec) -> None:
    mixer, x, memory = build(spec), inputs(3, 5), memory_of(3)
    noisy = memory.states.masked_fill(~memory.real[..., None], 50.0)
    expected, _ = run(mixer, x, memory)
    got, _ = run(mixer, x, Memory(noisy, memory.real))
    close(got, expected)


@every_mixer
def test_batch_law_a_row_alone_equals_the_row_in_a_batch(spec: MixerSpec) -> None:
    lengths = torch.tensor([6, 3, 1])
    mixer, x, memory = build(spec), inputs(3, 6), memory_of(3)
    together, _ = run(mixer, x, memory, torch.arange(6) < lengths[:, None])
    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        alone, _ = run(mixer, x[one, :length], Memory(memory.states[one], memory.real[one]))
        close(together[row, :length], alone[0])


@every_causal_mixer
@given(rows=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_rows_law_reordering_the_state_reorders_the_answers(spec: MixerSpec, rows: list[int]) -> None:
    mixer, x, memory = build(spec), inputs(3, 5), memory_of(3)
    _, state = run(mixer, x, memory)
    now, index = inputs(3, 1, seed=4), torch.tensor(rows)
    past = Timeline.follow(no_past(3), torch.ones(3, 5, dtype=torch.bool), masks.causal).past
    one = torch.ones(3, 1, dtype=torch.bool)
    expected, _ = mixer(now, Timeline.follow(past, one, masks.causal), state)
    timeline = Timeline.follow(select_rows(past, index), one[index], masks.causal)
    got, _ = mixer(now[index], timeline, select_rows(state, index))
    close(got, expected[index])


@every_mixer
def test_tape_law_watching_changes_nothing_and_weights_are_weights(spec: MixerSpec) -> None:
    lengths = torch.tensor([6, 3, 1])
    mixer, x, memory = build(spec), inputs(3, 6), memory_of(3)
    real = torch.arange(6) < lengths[:, None]
    unwatched, _ = run(mixer, x, memory, real)
    with Tape(mixer) as tape:
        watched, _ = run(mixer, x, memory, real)
    close(watched, unwatched)
    for recorded in tape.ending_with("weights").values():
        weights = torch.cat(recorded, dim=2)
        close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        keys = memory.real if weights.shape[-1] == SOURCE else real
        assert (weights.masked_select(~keys[:, None, None, :]) == 0).all()


@every_mixer
def test_tape_law_watching_changes_no_gradient(spec: MixerSpec) -> None:
    """Who watches sees the readable paths; who learns takes others, with gradients of their own."""
    mixer, x, memory = build(spec), inputs(3, 5).requires_grad_(), memory_of(3)
    remembered = memory.states.requires_grad_()
    real = torch.arange(5) < torch.tensor([[5], [2], [4]])
    taken = [x, remembered, *mixer.parameters()]

    def gradients() -> tuple[Tensor | None, ...]:
        y, _ = run(mixer, x, memory, real)
        cost = (y * torch.linspace(-1, 1, y[0].numel()).double().view(y[0].shape))[real].sum()
        return torch.autograd.grad(cost, taken, allow_unused=True)

    alone = gradients()
    with Tape(mixer):
        watched = gradients()
    for one, other in zip(alone, watched, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            close(one, other)


@every_mixer
def test_every_parameter_receives_a_gradient(spec: MixerSpec) -> None:
    mixer, x, memory = build(spec), inputs(3, 6), memory_of(3)
    y, _ = run(mixer, x, memory)
    (y * torch.randn_like(y)).sum().backward()
    idle = [name for name, p in mixer.named_parameters() if p.grad is None or not p.grad.any()]
    # Cells keep torch's two biases; a softmax is blind to what all keys share.
    assert [name for name in idle if "project.bias" not in name] == []


@every_mixer
def test_spec_goes_to_json_and_back(spec: MixerSpec) -> None:
    class Holder(Spec):
        mixer: MixerSpec

    holder = Holder(mixer=spec)
    assert Holder.from_json(holder.to_json()) == holder
    assert Holder.from_yaml(holder.to_yaml()) == holder
