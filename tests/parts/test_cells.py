"""Recurrent cells: single steps by hand, formulas unit by unit, and torch's own layers."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.core.precision import factors_rounded_to
from regard.core.randomness import drawing_from
from regard.parts.cells import (
    Cell,
    CellSpec,
    Elman,
    ElmanSpec,
    FusedCell,
    Gated,
    GatedSpec,
    LongShortTerm,
    LongShortTermSpec,
    Peephole,
    PeepholeSpec,
    ProjectedSpec,
)
from regard.parts.dropout import dropout

BATCH, TIME, INPUT, WIDTH = 3, 5, 7, 11
LN2, LN3 = math.log(2), math.log(3)  # σ(±ln 3) = 3/4, 1/4; tanh(ln 2) = 3/5; tanh(ln 3) = 4/5
CELLS: dict[str, CellSpec] = {
    "rnn": ElmanSpec(width=WIDTH),
    "relu rnn": ElmanSpec(width=WIDTH, activation="relu"),
    "lstm": LongShortTermSpec(width=WIDTH),
    "gru": GatedSpec(width=WIDTH),
    "peephole": PeepholeSpec(width=WIDTH),
    "projected_lstm": ProjectedSpec(width=WIDTH, held=13),
}
TORCH: dict[str, Callable[[], nn.RNNBase]] = {
    "rnn": lambda: nn.RNN(INPUT, WIDTH, batch_first=True),
    "relu rnn": lambda: nn.RNN(INPUT, WIDTH, nonlinearity="relu", batch_first=True),
    "lstm": lambda: nn.LSTM(INPUT, WIDTH, batch_first=True),
    "gru": lambda: nn.GRU(INPUT, WIDTH, batch_first=True),
    "projected_lstm": lambda: nn.LSTM(INPUT, 13, proj_size=WIDTH, batch_first=True),
}
every_cell = pytest.mark.parametrize("name", CELLS)
every_fused_cell = pytest.mark.parametrize("name", TORCH)


def build(name: str) -> Cell:
    torch.manual_seed(1)
    cell = CELLS[name].build(INPUT).double()
    for parameter in cell.parameters():
        parameter.data = 0.5 * torch.randn_like(parameter)
    return cell


def inputs() -> Tensor:
    return torch.randn(BATCH, TIME, INPUT, generator=torch.Generator().manual_seed(2), dtype=torch.double)


def first_state(cell: Cell) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    return tuple(torch.randn(BATCH, width, generator=generator, dtype=torch.double) for width in cell.widths)


def chain(cell: Cell, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    outputs = []
    for t in range(x.shape[1]):
        state = cell.step(cell.project(x[:, t]), state)
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state


def fill(parameter: Tensor, *rows: float) -> None:
    parameter.data = torch.tensor(rows, dtype=torch.double).reshape(parameter.shape)


def numbers(*values: float) -> tuple[Tensor, ...]:
    return tuple(torch.tensor([[value]], dtype=torch.double) for value in values)


# ---------------------------------------------------------------- by hand


def test_lstm_step_by_hand() -> None:
    """x = 1, h = 2, c = 2; i, f, o = 3/4, 1/2, 1/4 and g = 3/5, so c' = 1/2·2 + 3/4·3/5 = 1.45."""
    cell = LongShortTermSpec(width=1).build(1).double()
    assert isinstance(cell, LongShortTerm)
    of_input, of_state, input_bias, state_bias = cell.weights
    fill(of_input, 3, -2, 1, 4)  # times x = 1
    fill(of_state, -1, 2, 3, -2)  # times h = 2
    fill(input_bias, LN3 - 1 - 5, 0 - 2 - 5, LN2 - 7 - 5, -LN3 + 0 - 5)
    fill(state_bias, 5, 5, 5, 5)
    h, c = cell.step(cell.project(torch.ones(1, 1).double()), numbers(2, 2))
    assert c.item() == pytest.approx(1.45)
    assert h.item() == pytest.approx(0.25 * math.tanh(1.45))


def test_gru_step_by_hand() -> None:
    """x = 1, h = 2; r = 3/4, z = 1/4, U h + b = 4, so n = tanh(ln 2) = 3/5, h' = 3/4·3/5 + 1/4·2 = 0.95."""
    cell = GatedSpec(width=1).build(1).double()
    assert isinstance(cell, Gated)
    of_input, of_state, input_bias, state_bias = cell.weights
    fill(of_input, 3, -2, 1)
    fill(of_state, -1, 2, 3)
    fill(input_bias, LN3 - 1 - 5, -LN3 - 2 - 5, LN2 - 1 - 0.75 * 4)
    fill(state_bias, 5, 5, -2)
    (h,) = cell.step(cell.project(torch.ones(1, 1).double()), numbers(2))
    assert h.item() == pytest.approx(0.95)


@pytest.mark.parametrize(("activation", "expected"), [("tanh", 0.6), ("relu", LN2)])
def test_rnn_step_by_hand(activation: str, expected: float) -> None:
    cell = ElmanSpec(width=1, activation=activation).build(1).double()
    assert isinstance(cell, Elman)
    of_input, of_state, input_bias, state_bias = cell.weights
    fill(of_input, 3)
    fill(of_state, -2)
    fill(input_bias, LN2 + 1 - 5)
    fill(state_bias, 5)
    (h,) = cell.step(cell.project(torch.ones(1, 1).double()), numbers(2))
    assert h.item() == pytest.approx(expected)


def test_peephole_step_by_hand() -> None:
    """i and f see the old cell, o the new one: with c = 2 and c' = 1.45 all weights on it are 1."""
    cell = PeepholeSpec(width=1).build(1).double()
    assert isinstance(cell, Peephole)
    fill(cell.inputs.weight, 3, -2, 1, 4)
    fill(cell.recurrent.weight, -1, 2, 3, -2)
    fill(cell.recurrent.bias, LN3 - 1 - 2, 0 - 2 - 2, LN2 - 7, -LN3 - 1.45)
    fill(cell.peep, 1, 1, 1)
    h, c = cell.step(cell.project(torch.ones(1, 1).double()), numbers(2, 2))
    assert c.item() == pytest.approx(1.45)
    assert h.item() == pytest.approx(0.25 * math.tanh(1.45))


# ---------------------------------------------------------------- formulas, unit by unit


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_peephole_is_its_formulas() -> None:
    """Gers et al. 2002: i, f = σ(… + W_ci/W_cf ⊙ c_{t−1}), o = σ(… + W_co ⊙ c_t)."""
    cell, x = build("peephole"), inputs()
    assert isinstance(cell, Peephole)
    state = first_state(cell)
    outputs, (last_h, last_c) = cell.run(x, state)
    of_input, of_state = cell.inputs.weight.tolist(), cell.recurrent.weight.tolist()
    bias, peep = cell.recurrent.bias.tolist(), cell.peep.tolist()
    for row in range(BATCH):
        h, c = (part[row].tolist() for part in state)
        for t in range(TIME):
            seen = x[row, t].tolist()

            def gate(number: int, unit: int, seen: list[float] = seen, h: list[float] = h) -> float:
                at = number * WIDTH + unit
                from_input = sum(w * v for w, v in zip(of_input[at], seen, strict=True))
                return from_input + sum(w * v for w, v in zip(of_state[at], h, strict=True)) + bias[at]

            new_h, new_c = [], []
            for unit in range(WIDTH):
                let_in = sigmoid(gate(0, unit) + peep[0][unit] * c[unit])
                keep = sigmoid(gate(1, unit) + peep[1][unit] * c[unit])
                new_c.append(keep * c[unit] + let_in * math.tanh(gate(2, unit)))
                let_out = sigmoid(gate(3, unit) + peep[2][unit] * new_c[-1])
                new_h.append(let_out * math.tanh(new_c[-1]))
            h, c = new_h, new_c
            assert outputs[row, t].tolist() == pytest.approx(h)
        assert last_h[row].tolist() == pytest.approx(h)
        assert last_c[row].tolist() == pytest.approx(c)


def test_a_peephole_that_is_shut_is_an_lstm() -> None:
    peephole, lstm, x = build("peephole"), build("lstm"), inputs()
    assert isinstance(peephole, Peephole)
    assert isinstance(lstm, LongShortTerm)
    of_input, of_state, input_bias, state_bias = lstm.weights
    peephole.inputs.weight.data = of_input.data
    peephole.recurrent.weight.data = of_state.data
    peephole.recurrent.bias.data = (input_bias + state_bias).data
    assert not torch.allclose(peephole.run(x, first_state(lstm))[0], lstm.run(x, first_state(lstm))[0])
    peephole.peep.data.zero_()
    torch.testing.assert_close(peephole.run(x, first_state(lstm)), lstm.run(x, first_state(lstm)))


# ---------------------------------------------------------------- torch's own layers


@every_cell
def test_a_chain_of_steps_is_the_run(name: str) -> None:
    cell, x = build(name), inputs()
    torch.testing.assert_close(cell.run(x, first_state(cell)), chain(cell, x, first_state(cell)))


@every_fused_cell
def test_a_chain_of_steps_is_torchs_layer(name: str) -> None:
    cell, x, theirs = build(name), inputs(), TORCH[name]().double()
    assert isinstance(cell, FusedCell)
    theirs.load_state_dict(cell.fused.state_dict())
    first = tuple(part[None] for part in first_state(cell))
    expected, after = theirs(x, first if len(first) > 1 else first[0])
    outputs, state = chain(cell, x, first_state(cell))
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(state, tuple(part[0] for part in (after if len(first) > 1 else (after,))))


@every_cell
def test_steps_that_share_their_weights_are_steps(name: str) -> None:
    """Half of each input is known before, half of it when its turn comes; gradients are the same."""
    cell, x = build(name), inputs().requires_grad_()
    taken = [x, *cell.parameters()]

    def gradients(sharing: bool) -> tuple[Tensor | None, ...]:
        state, outputs = first_state(cell), []
        before, step = cell.project(x[..., :3], slice(0, 3)), cell.stepping(slice(3, None))
        for time, gates in enumerate(before.unbind(1)):
            if sharing:
                state = step(gates, x[:, time, 3:], state)
            else:
                state = cell.step(gates + cell.project(x[:, time, 3:], slice(3, None)), state)
            outputs.append(state[0])
        return torch.autograd.grad(torch.stack(outputs).pow(2).sum(), taken, allow_unused=True)

    torch.testing.assert_close(gradients(True), gradients(False))


@every_cell
def test_rounded_factors_leave_a_run_near_what_it_is(name: str) -> None:
    cell, x = build(name).float(), inputs().float().requires_grad_()
    first = tuple(part.float() for part in first_state(cell))
    real = torch.arange(TIME) < torch.tensor([[5], [2], [0]])
    taken = [x, *cell.parameters()]

    def run() -> list[Tensor | None]:
        outputs, state = cell.run(x, first, real)
        cost = outputs[real].pow(2).sum() + state[0].sum()
        return [*state, *torch.autograd.grad(cost, taken, allow_unused=True)]

    exact = run()
    with factors_rounded_to(torch.bfloat16):
        rounded = run()
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)


@every_cell
def test_each_row_stops_at_its_own_end(name: str) -> None:
    """Padding leaves the state alone, and a row of nothing keeps the state it came with."""
    cell, x = build(name), inputs()
    lengths = [5, 2, 0]
    real = torch.arange(TIME) < torch.tensor(lengths)[:, None]
    before = first_state(cell)
    outputs, state = cell.run(x, before, real)
    for row, length in enumerate(lengths):
        one = slice(row, row + 1)
        alone = tuple(part[one] for part in before)
        if length:
            expected, alone = chain(cell, x[one, :length], alone)
            torch.testing.assert_close(outputs[one, :length], expected)
        torch.testing.assert_close(tuple(part[one] for part in state), alone)


@every_cell
def test_inputs_may_be_projected_in_parts(name: str) -> None:
    cell, x = build(name), inputs()
    together = cell.project(x[..., :3], slice(0, 3)) + cell.project(x[..., 3:], slice(3, None))
    torch.testing.assert_close(together, cell.project(x))


@every_cell
def test_the_first_state_is_zero(name: str) -> None:
    cell = build(name)
    start = cell.start(BATCH)
    assert len(start) == cell.tensors == (2 if name in ("lstm", "peephole", "projected_lstm") else 1)
    assert start[0].shape == (BATCH, WIDTH)
    assert not any(part.any() for part in start)


def test_forget_gates_begin_open() -> None:
    lstm, peephole = LongShortTermSpec(width=5).build(3), PeepholeSpec(width=5).build(3)
    assert isinstance(lstm, LongShortTerm)
    assert isinstance(peephole, Peephole)
    for bias in (lstm.weights[2], peephole.recurrent.bias):
        assert (bias[5:10] == 1).all()
        assert not (bias == 1)[[*range(5), *range(10, 20)]].any()


def test_weight_dropout_switches_off_recurrent_weights_for_a_whole_run() -> None:
    """One mask for all rows and times: a run is a run of the cell with those weights at zero."""
    torch.manual_seed(1)
    cell = LongShortTermSpec(width=6, weight_dropout=0.5).build(4)
    assert isinstance(cell, LongShortTerm)
    x, state = torch.randn(3, 5, 4), cell.start(3)
    generator = torch.Generator().manual_seed(9)
    with drawing_from(generator):
        y, after = cell.train().run(x, state)
    with drawing_from(generator.manual_seed(9)):
        dropped = dropout(cell.weights[1], 0.5)
    assert 0.2 < float((dropped == 0).float().mean()) < 0.8
    with torch.no_grad():
        cell.weights[1].copy_(dropped)
    expected, expected_after = cell.eval().run(x, state)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(after, expected_after)


def test_weight_dropout_is_only_for_training_and_reaches_the_weights() -> None:
    cell = LongShortTermSpec(width=6, weight_dropout=0.5).build(4)
    plain = LongShortTermSpec(width=6).build(4)
    plain.load_state_dict(cell.state_dict())
    x = torch.randn(3, 5, 4)
    torch.testing.assert_close(cell.eval().run(x, cell.start(3)), plain.eval().run(x, plain.start(3)))
    y, _ = cell.train().run(x, cell.start(3))
    y.sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in cell.parameters())


def test_weight_dropout_lets_each_row_stop_at_its_own_end() -> None:
    torch.manual_seed(1)
    cell = LongShortTermSpec(width=6, weight_dropout=0.5).build(4).train()
    x, state = torch.randn(4, 5, 4), tuple(torch.randn(4, 6) for _ in range(2))
    lengths = [2, 5, 0, 3]
    real = torch.arange(5) < torch.tensor(lengths)[:, None]
    generator = torch.Generator()
    with drawing_from(generator.manual_seed(9)):
        y, after = cell.run(x, state, real)
    for row, length in enumerate(lengths):
        alone = tuple(part[row : row + 1] for part in state)
        if length:
            with drawing_from(generator.manual_seed(9)):
                expected, alone = cell.run(x[row : row + 1, :length], alone)
            torch.testing.assert_close(y[row : row + 1, :length], expected)
        torch.testing.assert_close(tuple(part[row : row + 1] for part in after), alone)


@every_cell
@pytest.mark.parametrize("batch", [3, 500])
def test_advancing_is_a_step(name: str, batch: int) -> None:
    """With few rows and with many, with and without a gradient."""
    torch.manual_seed(0)
    cell = CELLS[name].build(INPUT).double()
    x = torch.randn(batch, INPUT).double()
    state = tuple(torch.randn(batch, width).double() for width in cell.widths)
    wanted = cell.step(cell.project(x), state)
    with torch.no_grad():
        quick = cell.advance(x, state)
    for found in (cell.advance(x, state), quick):
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other)
