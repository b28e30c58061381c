"""Decoders that look at every step, against the papers' equations written out with torch's own cells."""

import pytest
import torch
from torch import Tensor, nn

from regard.core.sequences import Memory, Timeline
from regard.core.tape import Tape
from regard.mixers.attentive import LookThenStep, LookThenStepSpec, StepThenLook, StepThenLookSpec
from regard.mixers.recurrent import Recurrent, RecurrentSpec
from regard.parts.cells import FusedCell, GatedSpec, LongShortTermSpec
from regard.parts.pooling import EndsSpec, LastSpec
from regard.parts.scores import Additive, AdditiveSpec, General
from tests.models.torch_nn import randomise

BATCH, TIME, SOURCE, WIDTH, MEMORY, CELL, READ = 3, 5, 7, 11, 10, 13, 17
REAL = torch.arange(SOURCE) < torch.tensor([7, 2, 4])[:, None]


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


X, STATES = random(BATCH, TIME, WIDTH, seed=1), random(BATCH, SOURCE, MEMORY, seed=2)
KNOWN = Memory(STATES, REAL)
WHOLE = Timeline.follow(None, torch.ones(BATCH, TIME).bool())


def weighted(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax over the real part of the source, and the sum of states it gives."""
    exponentials = scores.exp() * REAL
    weights = exponentials / exponentials.sum(1, keepdim=True)
    return weights, (weights[..., None] * STATES).sum(1)


def test_look_then_step_is_bahdanaus_decoder() -> None:
    """e = vᵀ tanh(W s_{t−1} + U h_j); s_t = GRU([y; c], s_{t−1}); out = maxout of [s_t; y; c]."""
    spec = LookThenStepSpec(
        cell=GatedSpec(width=CELL), score=AdditiveSpec(hidden=19), readout=READ, bridge=LastSpec()
    )
    ours = spec.build(WIDTH, MEMORY).double()
    assert isinstance(ours, LookThenStep)
    assert isinstance(ours.cell, FusedCell)
    assert isinstance(ours.score, Additive)
    randomise(ours, seed=3)
    cell = nn.GRUCell(WIDTH + MEMORY, CELL).double()
    for theirs, weight in zip(cell.parameters(), ours.cell.weights, strict=True):
        theirs.data = weight.data
    with Tape(ours) as tape:
        got, _ = ours(X, WHOLE, ours.start(BATCH, KNOWN))

    last = torch.stack([STATES[row, length - 1] for row, length in enumerate(REAL.sum(1).tolist())])
    s = torch.tanh(ours.bridge.linear(last))
    for t in range(TIME):
        of_query, of_keys = s @ ours.score.query_weight[0], STATES @ ours.score.key_weight[0]
        weights, context = weighted(torch.tanh(of_query[:, None] + of_keys) @ ours.score.vector[0])
        s = cell(torch.cat((X[:, t], context), dim=-1), s)
        pairs = ours.readout(torch.cat((s, X[:, t], context), dim=-1))
        torch.testing.assert_close(tape["weights"][t][:, 0, 0], weights)
        torch.testing.assert_close(got[:, t], torch.maximum(pairs[:, 0::2], pairs[:, 1::2]))


@pytest.mark.parametrize("feeding", [True, False])
def test_step_then_look_is_luongs_decoder(feeding: bool) -> None:
    """h_t = LSTM([y; h̃_{t−1}]); a = softmax(hᵀ W h̄); h̃_t = tanh(W_c [c; h_t])."""
    spec = StepThenLookSpec(cell=LongShortTermSpec(width=CELL), feeding=feeding, bridge=EndsSpec())
    ours = spec.build(WIDTH, MEMORY).double()
    assert isinstance(ours, StepThenLook)
    assert isinstance(ours.cell, FusedCell)
    assert isinstance(ours.score, General)
    randomise(ours, seed=4)
    cell = nn.LSTMCell(WIDTH + (CELL if feeding else 0), CELL).double()
    for theirs, weight in zip(cell.parameters(), ours.cell.weights, strict=True):
        theirs.data = weight.data
    got, _ = ours(X, WHOLE, ours.start(BATCH, KNOWN))

    last = torch.stack([STATES[row, length - 1] for row, length in enumerate(REAL.sum(1).tolist())])
    ends = torch.cat((last[:, : MEMORY // 2], STATES[:, 0, MEMORY // 2 :]), dim=-1)
    first = torch.tanh(ours.bridge.linear(ends))
    h, c, fed = first[:, :CELL], first[:, CELL:], torch.zeros(BATCH, CELL).double()
    for t in range(TIME):
        h, c = cell(torch.cat((X[:, t], fed), dim=-1) if feeding else X[:, t], (h, c))
        _, context = weighted(torch.einsum("bc,mc,bsm->bs", h, ours.score.weight[0], STATES))
        fed = torch.tanh(ours.combine(torch.cat((context, h), dim=-1)))
        torch.testing.assert_close(got[:, t], fed)


def test_a_bridge_starts_a_recurrence_from_the_last_state() -> None:
    """Without attention the memory is seen only through one vector."""
    spec = RecurrentSpec(cell=LongShortTermSpec(width=CELL), bridge=LastSpec())
    ours = spec.build(WIDTH, MEMORY).double()
    assert isinstance(ours, Recurrent)
    assert ours.bridge is not None
    randomise(ours, seed=5)
    theirs = nn.LSTM(WIDTH, CELL, batch_first=True).double()
    theirs.load_state_dict(ours.cells[0].fused.state_dict())
    last = torch.stack([STATES[row, length - 1] for row, length in enumerate(REAL.sum(1).tolist())])
    h, c = torch.tanh(ours.bridge.linear(last)).split(CELL, dim=-1)
    expected, _ = theirs(X, (h[None].contiguous(), c[None].contiguous()))
    got, _ = ours(X, WHOLE, ours.start(BATCH, KNOWN))
    torch.testing.assert_close(got, expected)
