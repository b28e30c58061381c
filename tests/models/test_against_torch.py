"""Mixers and stacks against torch's own layers with the same weights."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core import masks
from regard.core.errors import UsageError
from regard.core.sequences import Memory, Timeline
from regard.mixers.attention import MemoryAttention, MemoryAttentionSpec, SelfAttention, SelfAttentionSpec
from regard.mixers.convolution import (
    Convolution,
    ConvolutionSpec,
    ParallelConvolution,
    ParallelConvolutionSpec,
)
from regard.mixers.mixer import Mixer
from regard.mixers.pointwise import PointwiseSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.parts.cells import CellSpec, ElmanSpec, GatedSpec, LongShortTermSpec
from regard.parts.filters import Filters
from regard.parts.norms import LayerNormSpec
from regard.parts.positions import BucketsSpec, PairPositionSpec, RelativeSpec, RotarySpec
from regard.stacks.join import JoinSpec, PostNormSpec, PreNormSpec
from regard.stacks.stack import BlockSpec, Stack, StackSpec
from tests.models import torch_nn
from tests.models.torch_nn import randomise

BATCH, TIME, SOURCE, WIDTH, HEADS, HIDDEN, MEMORY_WIDTH = 3, 5, 7, 12, 3, 17, 10
REAL = torch.arange(TIME) < torch.tensor([5, 3, 1])[:, None]
SOURCE_REAL = torch.arange(SOURCE) < torch.tensor([2, 7, 4])[:, None]
FUTURE = torch.ones(TIME, TIME).triu(1).bool()  # torch's masks say what may not be seen
both_norms = pytest.mark.parametrize(
    ("join", "norm_first"), [(PostNormSpec(), False), (PreNormSpec(), True)], ids=["post-norm", "pre-norm"]
)
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["seeing all", "causal"])


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def timeline(causal: bool) -> Timeline:
    return Timeline.follow(None, REAL, masks.causal if causal else None)


def memory(width: int) -> Memory:
    return Memory(random(BATCH, SOURCE, width, seed=9), SOURCE_REAL)


def run(part: Mixer | Stack, x: Tensor, causal: bool, known: Memory | None = None) -> Tensor:
    y: Tensor = part(x, timeline(causal), part.start(BATCH, known))[0]
    return y


def same_where_real(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours[REAL], theirs[REAL], rtol=1e-9, atol=1e-10)


# ---------------------------------------------------------------- attention


@causal_or_not
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention(causal: bool, bias: bool) -> None:
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, bias=bias, dtype=torch.double)
    randomise(theirs, seed=1)
    ours = SelfAttentionSpec(heads=HEADS, bias=bias).build(WIDTH, None).double()
    assert isinstance(ours, SelfAttention)
    assert [name for name, _ in ours.named_parameters() if "bias" in name] == (
        ["project.bias", "out.bias"] if bias else []
    )
    if bias:
        torch_nn.copy_self_attention(theirs, ours)
    else:
        ours.project.weight.data, ours.out.weight.data = (
            theirs.in_proj_weight.data,
            theirs.out_proj.weight.data,
        )
    x = random(BATCH, TIME, WIDTH, seed=2)
    expected, _ = theirs(x, x, x, key_padding_mask=~REAL, attn_mask=FUTURE if causal else None)
    same_where_real(run(ours, x, causal), expected)


@pytest.mark.parametrize("memory_width", [WIDTH, MEMORY_WIDTH])
def test_memory_attention(memory_width: int) -> None:
    theirs = nn.MultiheadAttention(
        WIDTH, HEADS, batch_first=True, kdim=memory_width, vdim=memory_width, dtype=torch.double
    )
    randomise(theirs, seed=1)
    ours = MemoryAttentionSpec(heads=HEADS).build(WIDTH, memory_width).double()
    assert isinstance(ours, MemoryAttention)
    torch_nn.copy_memory_attention(theirs, ours)
    x, known = random(BATCH, TIME, WIDTH, seed=2), memory(memory_width)
    expected, _ = theirs(x, known.states, known.states, key_padding_mask=~known.real)
    same_where_real(run(ours, x, False, known), expected)


def test_windowed_attention_is_attention_with_a_band() -> None:
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.double)
    randomise(theirs, seed=1)
    ours = SelfAttentionSpec(heads=HEADS, radius=1).build(WIDTH, None).double()
    torch_nn.copy_self_attention(theirs, ours)
    x = random(BATCH, TIME, WIDTH, seed=2)
    beyond = (torch.arange(TIME) - torch.arange(TIME)[:, None]).abs() > 1
    for causal in (False, True):
        hidden = beyond | FUTURE if causal else beyond
        expected, _ = theirs(x[:1], x[:1], x[:1], attn_mask=hidden)
        torch.testing.assert_close(run(ours, x, causal)[:1], expected)


@pytest.mark.parametrize(
    "positions", [RotarySpec(), RelativeSpec(farthest=2), BucketsSpec(buckets=8, farthest=6)]
)
def test_attention_feels_distances_not_places(positions: PairPositionSpec) -> None:
    """Everything moved along the axis together stays as it is; without the part it would not be the same."""
    ours = SelfAttentionSpec(heads=HEADS, positions=positions).build(WIDTH, None).double()
    for parameter in ours.parameters():
        parameter.data = 0.3 * random(*parameter.shape, seed=1)
    blind = SelfAttentionSpec(heads=HEADS).build(WIDTH, None).double()
    blind.load_state_dict(ours.state_dict(), strict=False)
    x, here = random(BATCH, TIME, WIDTH, seed=2), timeline(causal=True)
    there = here._replace(position=here.position + 9)
    same_where_real(ours(x, there, None)[0], ours(x, here, None)[0])
    assert not torch.allclose(ours(x, here, None)[0][REAL], blind(x, here, None)[0][REAL])


# ---------------------------------------------------------------- Transformer layers


def stack(join: JoinSpec, *mixers: object, norm_last: bool, memory_width: int | None = None) -> Stack:
    block = BlockSpec(mixers=mixers, join=join, repeat=2)
    spec = StackSpec(blocks=(block,), final_norm=LayerNormSpec() if norm_last else None)
    return spec.build(WIDTH, memory_width).double()


@both_norms
@causal_or_not
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layers(join: JoinSpec, norm_first: bool, causal: bool, activation: str) -> None:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=norm_first, dtype=torch.double
    )
    norm = nn.LayerNorm(WIDTH, dtype=torch.double) if norm_first else None
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
    randomise(theirs, seed=3)
    ours = stack(
        join,
        SelfAttentionSpec(heads=HEADS),
        PointwiseSpec(hidden=HIDDEN, activation=activation),
        norm_last=norm_first,
    )
    for source, target in zip(theirs.layers, ours.layers, strict=True):
        torch_nn.copy_encoder_layer(source, target)
    if norm is not None:
        torch_nn.copy(norm, ours.final_norm)
    x = random(BATCH, TIME, WIDTH, seed=4)
    expected = theirs(x, mask=FUTURE if causal else None, src_key_padding_mask=~REAL)
    same_where_real(run(ours, x, causal), expected)


@both_norms
def test_decoder_layers(join: JoinSpec, norm_first: bool) -> None:
    layer = nn.TransformerDecoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.double
    )
    norm = nn.LayerNorm(WIDTH, dtype=torch.double) if norm_first else None
    theirs = nn.TransformerDecoder(layer, 2, norm)
    randomise(theirs, seed=3)
    ours = stack(
        join,
        SelfAttentionSpec(heads=HEADS),
        MemoryAttentionSpec(heads=HEADS),
        PointwiseSpec(hidden=HIDDEN),
        norm_last=norm_first,
        memory_width=WIDTH,
    )
    for source, target in zip(theirs.layers, ours.layers, strict=True):
        torch_nn.copy_decoder_layer(source, target)
    if norm is not None:
        torch_nn.copy(norm, ours.final_norm)
    x, known = random(BATCH, TIME, WIDTH, seed=4), memory(WIDTH)
    expected = theirs(
        x,
        known.states,
        tgt_mask=FUTURE,
        tgt_key_padding_mask=~REAL,
        memory_key_padding_mask=~known.real,
    )
    same_where_real(run(ours, x, True, known), expected)


# ---------------------------------------------------------------- recurrence


@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize(
    ("theirs", "cell"),
    [
        (nn.RNN, ElmanSpec(width=11)),
        (nn.LSTM, LongShortTermSpec(width=11)),
        (nn.GRU, GatedSpec(width=11)),
    ],
    ids=["rnn", "lstm", "gru"],
)
def test_deep_recurrence(theirs: type[nn.RNNBase], cell: CellSpec, direction: str) -> None:
    """Every direction of a layer reads both directions of the one below."""
    deep = theirs(WIDTH, 11, num_layers=3, bidirectional=direction == "both", batch_first=True).double()
    randomise(deep, seed=5)
    block = BlockSpec(mixers=(RecurrentSpec(cell=cell, direction=direction),), repeat=3)
    ours = StackSpec(blocks=(block,)).build(WIDTH, None).double()
    torch_nn.copy_recurrence(deep, ours)
    x = random(BATCH, TIME, WIDTH, seed=6)
    packed = pack_padded_sequence(x, REAL.sum(1), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(deep(packed)[0], batch_first=True, total_length=TIME)
    same_where_real(run(ours, x, False), expected)


# ---------------------------------------------------------------- convolution


@pytest.mark.parametrize(
    ("kernel", "causal"), [(1, False), (3, False), (5, False), (1, True), (3, True), (4, True)]
)
def test_gated_convolution(kernel: int, causal: bool) -> None:
    """One half of the channels passes where the other half opens; outside the sequence there are zeros."""
    ours = ConvolutionSpec(kernel=kernel, causal=causal).build(WIDTH, None).double()
    assert isinstance(ours, Convolution)
    randomise(ours, seed=7)
    x = random(BATCH, TIME, WIDTH, seed=8)
    got = run(ours, x, causal)
    for row, length in enumerate(REAL.sum(1).tolist()):
        channels = x[row : row + 1, :length].transpose(1, 2)
        before = kernel - 1 if causal else kernel // 2
        padded = F.pad(channels, (before, kernel - 1 - before))
        values, gates = F.conv1d(padded, ours.convolve.weight, ours.convolve.bias).chunk(2, dim=1)
        expected = (values * torch.sigmoid(gates)).transpose(1, 2)
        torch.testing.assert_close(got[row, :length], expected[0])


def test_gated_convolution_by_hand() -> None:
    """Width 1, kernel 3, weights 1, 2, 3 and a gate of σ(ln 3) = 3/4."""
    for causal, expected in ((False, [8.0, 14.0, 8.0]), (True, [3.0, 8.0, 14.0])):
        ours = ConvolutionSpec(kernel=3, causal=causal).build(1, None).double()
        assert isinstance(ours, Convolution)
        ours.convolve.weight.data = torch.tensor([[[1.0, 2.0, 3.0]], [[0.0, 0.0, 0.0]]]).double()
        assert ours.convolve.bias is not None
        ours.convolve.bias.data = torch.tensor([0.0, math.log(3)]).double()
        x = torch.tensor([[[1.0], [2.0], [3.0]]]).double()
        whole = Timeline.follow(None, torch.ones(1, 3).bool())
        y, _ = ours(x, whole, ours.start(1, None))
        torch.testing.assert_close(y.flatten(), 0.75 * torch.tensor(expected).double())


def test_an_even_kernel_has_no_middle() -> None:
    with pytest.raises(UsageError, match="odd kernel, got 4"):
        ConvolutionSpec(kernel=4).build(WIDTH, None)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@causal_or_not
def test_convolutions_side_by_side(causal: bool) -> None:
    """Of an even width torch, too, sees one token more ahead than behind; filters keep the order given."""
    widths = (4, 1, 5, 2)
    filters = tuple(Filters(width=width, count=3 + width) for width in widths)
    ours = ParallelConvolutionSpec(filters=filters, causal=causal).build(WIDTH, None).double()
    assert isinstance(ours, ParallelConvolution)
    assert ours.width == 24
    randomise(ours, seed=7)
    x = random(BATCH, TIME, WIDTH, seed=8)
    got = run(ours, x, causal)
    for row, length in enumerate(REAL.sum(1).tolist()):
        channels, expected = x[row : row + 1, :length].transpose(1, 2), []
        for width, look in zip(widths, ours.filters, strict=True):
            theirs = nn.Conv1d(WIDTH, 3 + width, width, padding=width - 1 if causal else "same").double()
            theirs.load_state_dict(look.state_dict())
            expected.append(torch.relu(theirs(channels))[0, :, :length].T)
        torch.testing.assert_close(got[row, :length], torch.cat(expected, dim=1))


def test_convolutions_side_by_side_by_hand() -> None:
    """Four tokens wide: one before, itself, two after; with weights 1, 10, 100, 1000 digits tell which."""
    for causal, expected in ((False, [3210.0, 4321.0, 432.0, 43.0]), (True, [1e3, 2100.0, 3210.0, 4321.0])):
        spec = ParallelConvolutionSpec(filters=(Filters(width=4, count=1),), causal=causal)
        ours = spec.build(1, None).double()
        assert isinstance(ours, ParallelConvolution)
        ours.filters[0].weight.data = torch.tensor([[[1.0, 10.0, 100.0, 1000.0]]]).double()
        x = torch.tensor([[[1.0], [2.0], [3.0], [4.0]]]).double()
        whole = Timeline.follow(None, torch.ones(1, 4).bool())
        y, _ = ours(x, whole, ours.start(1, None))
        torch.testing.assert_close(y.flatten(), torch.tensor(expected).double())
