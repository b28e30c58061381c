"""How probable every token of a long text is: read in lanes with carried state, or in overlapping windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Int
from torch import Tensor

from regard.core.sequences import Tokens
from regard.core.state import State, map_tensors
from regard.tasks.windows import TextModel

_TOGETHER = 32
"""Windows that are read side by side."""
_LANES = 8
_WARM_UP = 512
"""Tokens that a lane reads before its first judged one."""


@dataclass(frozen=True)
class Judge:
    model: TextModel
    padding: int
    device: torch.device
    window: int
    """Tokens that are read together."""
    context: int
    """Where windows are read alone: tokens in front of each that are read but not judged again."""
    carries: bool
    """The state goes along from one window to the next."""

    def log_probs(self, stream: Sequence[int]) -> Tensor:
        """Of every token but the first, given all before it, or as many as a window holds."""
        ids = torch.tensor(stream, device=self.device)
        return self._carried(ids) if self.carries else self._windowed(ids)

    @property
    def seen(self) -> str:
        """How much each token was judged by, for a signature."""
        return "carried" if self.carries else f"{self.context}-{self.window - 1}"

    def _carried(self, ids: Int[Tensor, "time"]) -> Tensor:
        """In a few lanes side by side, each warmed up on what comes before it."""
        total = len(ids) - 1
        lanes = _LANES if total >= 2 * _LANES * _WARM_UP else 1
        lane = -(-total // lanes)
        found = torch.zeros(lanes, lane, device=self.device)
        starts = [number * lane for number in range(lanes)]
        state: State = self.model.start(lanes)
        # Warm up all lanes together; the first has nothing before it and reads padding.
        if lanes > 1:
            before = [ids[max(0, begin - _WARM_UP) : begin] for begin in starts]
            _, state = self.model.read(self._side_by_side(before), state)
        for begin, end in pairwise([*range(0, lane, self.window), lane]):
            stops = [min(start + end, total) for start in starts]
            given = self._side_by_side(
                [ids[start + begin : stop] for start, stop in zip(starts, stops, strict=True)]
            )
            x, state = self.model.read(given, state)
            wanted = [ids[start + begin + 1 : stop + 1] for start, stop in zip(starts, stops, strict=True)]
            values = self._chosen(x, self._side_by_side(wanted))
            found[:, begin : begin + values.shape[1]] = values
        return found.flatten()[:total].cpu()

    def _windowed(self, ids: Int[Tensor, "time"]) -> Tensor:
        """Overlapping windows; each judges only what the one before it did not."""
        total, window = len(ids) - 1, self.window
        fresh = max(1, window - self.context)
        begins = [0, *range(fresh, total - window + fresh + 1, fresh)] if total > window else [0]
        found, done = torch.zeros(total), 0
        for some in range(0, len(begins), _TOGETHER):
            group = begins[some : some + _TOGETHER]
            ends = [min(begin + window, total) for begin in group]
            given = [ids[begin:end] for begin, end in zip(group, ends, strict=True)]
            wanted = [ids[begin + 1 : end + 1] for begin, end in zip(group, ends, strict=True)]
            x, _ = self.model.read(self._side_by_side(given), self.model.start(len(group)))
            values = self._chosen(x, self._side_by_side(wanted)).cpu()
            for begin, end, row in zip(group, ends, values, strict=True):
                found[done:end] = row[done - begin : end - begin]
                done = end
        return found

    def _side_by_side(self, rows: Sequence[Int[Tensor, "_"]]) -> Tokens:
        return Tokens.pad([row.cpu().numpy() for row in rows], self.padding).to(self.device)

    def _chosen(self, x: State, wanted: Tokens) -> Tensor:
        """Log-probabilities of what was wanted."""
        rows = map_tensors(lambda tensor: tensor.flatten(0, 1), x)
        return self.model.log_probs_of(rows, wanted.ids.flatten()).view(wanted.ids.shape)
