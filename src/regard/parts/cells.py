"""Recurrent cells: one step of memory, and the fused run over a whole sequence.

``step`` is the readable formula and what attentive decoders call; ``run`` asks torch's fused kernel for the
same numbers. ``project`` does the part that depends on inputs only, for many positions at once.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, partial
from typing import ClassVar, Literal, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.precision import rounded_to
from regard.core.spec import Spec
from regard.core.state import State, map_tensors
from regard.parts.dropout import dropout
from regard.parts.linear import linear
from regard.parts.repeated import Weights
from regard.parts.squashing import is_quicker_by_sigmoid, tanh

Recurrence: TypeAlias = Callable[[Tensor], Tensor]
"""From the last output to what it adds to the gates."""
Stepping: TypeAlias = Callable[[Tensor, Tensor, State], tuple[Tensor, ...]]
"""From what inputs known before add to the gates, another input, and a state, to the next state."""


class Cell(nn.Module, ABC):
    """State is a tuple of (batch, width) tensors, the first of which is the output."""

    width: int
    tensors: int
    """How many tensors a state has."""

    @property
    def widths(self) -> list[int]:
        """Of the tensors of a state."""
        return [self.width] * self.tensors

    def start(self, batch: int) -> tuple[Tensor, ...]:
        like = next(self.parameters())
        return tuple(like.new_zeros(batch, width) for width in self.widths)

    @abstractmethod
    def project(
        self, x: Float[Tensor, "*rows input"], columns: slice = slice(None)
    ) -> Float[Tensor, "*rows gates"]:
        """What inputs add to the gates. ``columns`` says which part of the input ``x`` is."""

    @abstractmethod
    def step(self, projected: Float[Tensor, "batch gates"], state: State) -> tuple[Tensor, ...]:
        """The next state."""

    def advance(self, x: Float[Tensor, "batch input"], state: State) -> tuple[Tensor, ...]:
        """The next state, from one input: ``step`` after ``project``."""
        return self.step(self.project(x), state)

    def steps(self) -> Callable[[Tensor, State], tuple[Tensor, ...]]:
        """``step``, for one after another."""
        return self.step

    def stepping(self, columns: slice) -> Stepping:
        """The same, where ``columns`` of each input are known only when it is its turn."""
        step = self.steps()
        return lambda gates, x, state: step(gates + self.project(x, columns), state)

    def run(
        self,
        x: Float[Tensor, "batch time input"],
        state: State,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time width"], State]:
        """Outputs at every position and the state after the last real one (None: all are real)."""
        projected, step, outputs = self.project(x), self.steps(), []
        if real is not None and bool(real.all()):
            real = None
        for t, gates in enumerate(projected.unbind(1)):
            following = step(gates, state)
            if real is not None:
                here = real[:, t, None]
                following = tuple(torch.where(here, n, o) for n, o in zip(following, state, strict=True))
            state = following
            outputs.append(state[0])
        y = torch.stack(outputs, dim=1) if outputs else x.new_zeros(x.shape[0], 0, self.width)
        return y, state


class FusedCell(Cell):
    """A cell whose run is one of torch's own recurrent layers."""

    def __init__(self, fused: nn.RNNBase, tensors: int) -> None:
        super().__init__()
        self.fused, self.width, self.tensors = fused, fused.hidden_size, tensors

    @property
    def weights(self) -> list[nn.Parameter]:
        """Of inputs, of the state, and the biases of both."""
        return self.fused._flat_weights  # type: ignore[return-value]

    def project(
        self, x: Float[Tensor, "*rows input"], columns: slice = slice(None)
    ) -> Float[Tensor, "*rows gates"]:
        return linear(x, self.weights[0][:, columns])

    @abstractmethod
    def step(
        self, projected: Float[Tensor, "batch gates"], state: State, recurrence: Recurrence | None = None
    ) -> tuple[Tensor, ...]:
        """The next state. ``recurrence`` may stand for ``recur``, where steps share what it needs."""

    def recur(self, hidden: Float[Tensor, "batch width"]) -> Float[Tensor, "batch gates"]:
        return F.linear(hidden, self.weights[1], self.weights[3])

    def steps(self) -> Callable[[Tensor, State], tuple[Tensor, ...]]:
        return partial(self.step, recurrence=Weights(self.weights[1], self.weights[3]))

    def stepping(self, columns: slice) -> Stepping:
        step, of_input = self.steps(), Weights(self.weights[0][:, columns])
        return lambda gates, x, state: step(gates + of_input(x), state)

    def run(
        self,
        x: Float[Tensor, "batch time input"],
        state: State,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time width"], State]:
        # Accelerators' kernels take first states only in one piece.
        time_first = map_tensors(lambda tensor: tensor[None].contiguous(), state)
        given = time_first if self.tensors > 1 else time_first[0]
        if real is None or bool(real.all()):
            y, after = self.fused(x, given)
        else:
            # Packed, each row stops at its own end; torch wants at least one step of every row.
            lengths = real.sum(1)
            packed = pack_padded_sequence(
                x, lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False
            )
            packed_y, after = self.fused(packed, given)
            y, _ = pad_packed_sequence(packed_y, batch_first=True, total_length=x.shape[1])
        final = tuple(t[0] for t in after) if self.tensors > 1 else (after[0],)
        if real is not None:
            began = real.any(1, keepdim=True)
            final = tuple(torch.where(began, new, old) for new, old in zip(final, state, strict=True))
        return y, final


class Elman(FusedCell):
    """h_t = φ(U x_t + W h_{t−1} + b) (Elman 1990)."""

    def __init__(self, input_width: int, width: int, activation: Literal["tanh", "relu"]) -> None:
        super().__init__(nn.RNN(input_width, width, nonlinearity=activation, batch_first=True), tensors=1)
        self.activation = torch.tanh if activation == "tanh" else torch.relu

    def step(
        self, projected: Float[Tensor, "batch gates"], state: State, recurrence: Recurrence | None = None
    ) -> tuple[Tensor, ...]:
        return (self.activation(projected + self.weights[2] + (recurrence or self.recur)(state[0])),)


class LongShortTerm(FusedCell):
    """i, f, o = σ(…), c = f c + i tanh(…), h = o tanh(c) (Hochreiter and Schmidhuber 1997; Gers 2000).

    With ``weight_dropout``, every run switches off another share of the recurrent weights, for all times and
    rows alike (Merity et al. 2017 §2).
    """

    def __init__(self, input_width: int, width: int, weight_dropout: float = 0.0) -> None:
        super().__init__(nn.LSTM(input_width, width, batch_first=True), tensors=2)
        self.weight_dropout = weight_dropout
        # A forget gate that is open at first lets gradients through (Jozefowicz et al. 2015).
        with torch.no_grad():
            self.weights[2][width : 2 * width] = 1.0

    def step(
        self, projected: Float[Tensor, "batch gates"], state: State, recurrence: Recurrence | None = None
    ) -> tuple[Tensor, ...]:
        h, c = state
        gates = projected + self.weights[2] + (recurrence or self.recur)(h)
        i, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * tanh(g)
        return o.sigmoid() * tanh(c), c

    def advance(self, x: Float[Tensor, "batch input"], state: State) -> tuple[Tensor, ...]:
        if _many(x, self.width):
            return super().advance(x, state)
        after: tuple[Tensor, ...] = torch.lstm_cell(x, state, *self.weights)
        return after

    def run(
        self,
        x: Float[Tensor, "batch time input"],
        state: State,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time width"], State]:
        if not self.training or not self.weight_dropout or not x.shape[1]:
            return super().run(x, state, real)
        of_inputs, of_state, *biases = self.weights
        weights = [of_inputs, dropout(of_state, self.weight_dropout), *biases]
        first = tuple(tensor[None].contiguous() for tensor in state)
        if real is None or bool(real.all()):
            y, *after = torch.lstm(x, first, weights, True, 1, 0.0, True, False, True)
            return y, tuple(tensor[0] for tensor in after)
        # As torch's own layer does it: rows packed by time, the longest first, put back in order afterwards.
        packed = pack_padded_sequence(
            x, real.sum(1).clamp_min(1).cpu(), batch_first=True, enforce_sorted=False
        )
        order, back = packed.sorted_indices, packed.unsorted_indices
        assert order is not None
        assert back is not None
        ordered = tuple(tensor.index_select(1, order) for tensor in first)
        data, *after = torch.lstm(
            packed.data, packed.batch_sizes, ordered, weights, True, 1, 0.0, True, False
        )
        y, _ = pad_packed_sequence(packed._replace(data=data), batch_first=True, total_length=x.shape[1])
        began = real.any(1, keepdim=True)
        final = (tensor[0].index_select(0, back) for tensor in after)
        return y, tuple(torch.where(began, new, old) for new, old in zip(final, state, strict=True))


class Projected(FusedCell):
    """An LSTM that hands on, and sees again, a narrow projection of what it holds: h = W (o tanh(c)).

    (Sak et al. 2014 eq. 6 to 12, without peepholes.)
    """

    def __init__(self, input_width: int, width: int, held: int) -> None:
        _hear_out_torch()
        super().__init__(nn.LSTM(input_width, held, proj_size=width, batch_first=True), tensors=2)
        self.width, self.held = width, held
        with torch.no_grad():
            self.weights[2][held : 2 * held] = 1.0

    @property
    def widths(self) -> list[int]:
        return [self.width, self.held]

    def step(
        self, projected: Float[Tensor, "batch gates"], state: State, recurrence: Recurrence | None = None
    ) -> tuple[Tensor, ...]:
        (_, _, input_bias, _, narrow), (h, c) = self.weights, state
        gates = projected + input_bias + (recurrence or self.recur)(h)
        i, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return F.linear(o.sigmoid() * c.tanh(), narrow), c


@cache
def _hear_out_torch() -> None:
    """It says once that projections do not run on oneDNN, which is no news to whoever trains."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]), torch.no_grad():
        warnings.simplefilter("ignore")
        nn.LSTM(1, 2, proj_size=1, device="cpu")(torch.zeros(1, 1, 1, device="cpu"))


class Gated(FusedCell):
    """h = (1−z) n + z h, n = tanh(W x + r (U h)) (Cho et al. 2014)."""

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__(nn.GRU(input_width, width, batch_first=True), tensors=1)

    def step(
        self, projected: Float[Tensor, "batch gates"], state: State, recurrence: Recurrence | None = None
    ) -> tuple[Tensor, ...]:
        h = state[0]
        xr, xz, xn = (projected + self.weights[2]).chunk(3, dim=-1)
        hr, hz, hn = (recurrence or self.recur)(h).chunk(3, dim=-1)
        r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
        n = tanh(xn + r * hn)
        return (n + z * (h - n),)

    def advance(self, x: Float[Tensor, "batch input"], state: State) -> tuple[Tensor, ...]:
        if _many(x, self.width):
            return super().advance(x, state)
        return (torch.gru_cell(x, state[0], *self.weights),)

    def run(
        self,
        x: Float[Tensor, "batch time input"],
        state: State,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time width"], State]:
        if rounded_to() is None or not torch.is_grad_enabled():
            return super().run(x, state, real)
        # torch's own layer rounds no factors: it took 2.5 times as long.
        return Cell.run(self, x, state, real)


def _many(x: Tensor, width: int) -> bool:
    """Torch's own cells save calls where rows are few; where they are many, its tanh costs more than that."""
    return not torch.is_grad_enabled() and is_quicker_by_sigmoid(x, len(x) * width)


class Peephole(Cell):
    """An LSTM whose gates also see the cell: W_ci, W_cf on c_{t−1}, W_co on c_t (Gers et al. 2002)."""

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__()
        self.width, self.tensors = width, 2
        self.inputs = nn.Linear(input_width, 4 * width, bias=False)
        self.recurrent = nn.Linear(width, 4 * width)
        self.peep = nn.Parameter(torch.empty(3, width).uniform_(-1, 1) * width**-0.5)
        with torch.no_grad():
            self.recurrent.bias[width : 2 * width] = 1.0

    def project(
        self, x: Float[Tensor, "*rows input"], columns: slice = slice(None)
    ) -> Float[Tensor, "*rows gates"]:
        return linear(x, self.inputs.weight[:, columns])

    def step(self, projected: Float[Tensor, "batch gates"], state: State) -> tuple[Tensor, ...]:
        h, c = state
        i, f, g, o = (projected + self.recurrent(h)).chunk(4, dim=-1)
        peep_i, peep_f, peep_o = self.peep
        c_new = (f + peep_f * c).sigmoid() * c + (i + peep_i * c).sigmoid() * g.tanh()
        return (o + peep_o * c_new).sigmoid() * c_new.tanh(), c_new


class CellSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "rnn": "regard.parts.cells:ElmanSpec",
        "lstm": "regard.parts.cells:LongShortTermSpec",
        "projected_lstm": "regard.parts.cells:ProjectedSpec",
        "gru": "regard.parts.cells:GatedSpec",
        "peephole": "regard.parts.cells:PeepholeSpec",
    }
    width: int = Field(gt=0)

    def build(self, input_width: int) -> Cell:
        raise NotImplementedError


class ElmanSpec(CellSpec):
    activation: Literal["tanh", "relu"] = "tanh"

    def build(self, input_width: int) -> Cell:
        return Elman(input_width, self.width, self.activation)


class LongShortTermSpec(CellSpec):
    weight_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the recurrent weights that is switched off in training, anew for every batch."""

    def build(self, input_width: int) -> Cell:
        return LongShortTerm(input_width, self.width, self.weight_dropout)


class ProjectedSpec(CellSpec):
    """``width`` is that of the projection."""

    held: int = Field(gt=0)
    """Width of the cell itself."""

    @model_validator(mode="after")
    def _narrows(self) -> "ProjectedSpec":
        if self.width >= self.held:
            raise ValueError(f"width={self.width} must be less than held={self.held}: a projection narrows")
        return self

    def build(self, input_width: int) -> Cell:
        return Projected(input_width, self.width, self.held)


class GatedSpec(CellSpec):
    def build(self, input_width: int) -> Cell:
        return Gated(input_width, self.width)


class PeepholeSpec(CellSpec):
    def build(self, input_width: int) -> Cell:
        return Peephole(input_width, self.width)
