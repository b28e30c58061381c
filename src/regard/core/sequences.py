"""Sequences in a batch: tokens with their padding, memories to attend to, and the time axis they stand on."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core import masks


class Tokens(NamedTuple):
    """Rows of token ids, padded on the right; ``real`` is False on padding."""

    ids: Int[Tensor, "batch time"]
    real: Bool[Tensor, "batch time"]
    segments: Int[Tensor, "batch time"] | None = None
    """Which of several texts in a row each token belongs to; None: there is one."""
    letters: Int[Tensor, "batch time letters"] | None = None
    """How each token is spelled, for models that look at that."""

    @classmethod
    def pad(cls, rows: Sequence[Sequence[int] | np.ndarray], padding: int) -> "Tokens":
        """Stack rows of different lengths."""
        lengths = [len(row) for row in rows]
        ids = np.full((len(rows), max(lengths, default=0)), padding, dtype=np.int64)
        for row, values in zip(ids, rows, strict=True):
            row[: len(values)] = values
        real = np.arange(ids.shape[1])[None, :] < np.asarray(lengths, dtype=np.int64)[:, None]
        return cls(torch.from_numpy(ids), torch.from_numpy(real))

    @classmethod
    def whole(cls, ids: Int[Tensor, "batch time"]) -> "Tokens":
        """No padding anywhere."""
        return cls(ids, torch.ones_like(ids, dtype=torch.bool))

    def between(self, begin: int, end: int) -> "Tokens":
        """Some of the rows, with no more padding than they need."""
        real = self.real[begin:end]
        longest = int(real.sum(1).max()) if real.numel() else 0
        rest = (None if part is None else part[begin:end, :longest] for part in self[2:])
        return Tokens(self.ids[begin:end, :longest], real[:, :longest], *rest)

    def behind(self, token: int) -> "Tokens":
        """All rows with this token in front: of one text, and of words that nobody spells."""
        front = torch.full_like(self.ids[:, :1], token)
        real = torch.ones_like(self.real[:, :1])
        return Tokens(torch.cat((front, self.ids), dim=1), torch.cat((real, self.real), dim=1))

    def twice(self) -> "Tokens":
        """All rows, and all rows again."""
        rest = (None if part is None else torch.cat((part, part)) for part in self[2:])
        return Tokens(torch.cat((self.ids, self.ids)), torch.cat((self.real, self.real)), *rest)

    def to(self, device: torch.device | str) -> "Tokens":
        rest = (None if part is None else part.to(device) for part in self[2:])
        return Tokens(self.ids.to(device), self.real.to(device), *rest)


class Places(NamedTuple):
    """Tokens of each row that something is asked about, such as the first piece of every word."""

    at: Int[Tensor, "batch asked"]
    real: Bool[Tensor, "batch asked"]

    @classmethod
    def pad(cls, rows: Sequence[Sequence[int] | np.ndarray]) -> "Places":
        return cls(*Tokens.pad(rows, 0)[:2])

    def pick(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch asked width"]:
        return x.gather(1, self.at[..., None].expand(-1, -1, x.shape[-1]))

    def between(self, begin: int, end: int) -> "Places":
        """Of some of the rows, with no more padding than they need."""
        return Places(*Tokens(self.at, self.real).between(begin, end)[:2])

    def to(self, device: torch.device | str) -> "Places":
        return Places(self.at.to(device), self.real.to(device))


class Memory(NamedTuple):
    """What a decoder may look at: encoder states, image regions, frames."""

    states: Float[Tensor, "batch source width"]
    real: Bool[Tensor, "batch source"]


@runtime_checkable
class Visibility(Protocol):
    """Who may look at whom, as a function of positions: ``masks.causal`` is one."""

    def __call__(
        self, query: Int[Tensor, "#batch query"], key: Int[Tensor, "#batch key"]
    ) -> Bool[Tensor, "#batch 1 query key"]: ...


class Past(NamedTuple):
    """What of the time axis must be remembered between calls."""

    real: Bool[Tensor, "batch key"]
    position: Int[Tensor, "batch key"]
    total: Int[Tensor, "batch"]
    """Real tokens so far, those included that were forgotten."""

    @classmethod
    def none(cls, batch: int, device: torch.device | str = "cpu") -> "Past":
        """Nothing has been read yet."""
        nothing = torch.zeros(batch, 0, dtype=torch.long, device=device)
        return cls(nothing.bool(), nothing, nothing.sum(1))

    def nearest(self, reach: int | None) -> "Past":
        """Without what nobody looks back at: of every row the last ``reach`` tokens stay; None: all."""
        if reach is None or reach >= self.real.shape[1]:
            return self
        if reach == 0:
            return Past(self.real[:, :0], self.position[:, :0], self.total)
        wanted = (self.real & (self.position >= self.total[:, None] - reach)).any(0)
        # Padding between a row's tokens is in the way of others: cut only where nobody loses anything.
        begin = int(wanted.int().argmax()) if reach and bool(wanted.any()) else len(wanted)
        return Past(self.real[:, begin:], self.position[:, begin:], self.total)


class Timeline(NamedTuple):
    """The time axis as a mixer sees it: all tokens so far, of which the last ``queries`` are at hand.

    Positions count real tokens only, so padding inside a row moves nothing; padding itself stands where the
    last real token before it does.
    """

    real: Bool[Tensor, "batch key"]
    position: Int[Tensor, "batch key"]
    queries: int
    mask: Bool[Tensor, "#batch #heads query key"] | None
    total: Int[Tensor, "batch"]
    """Real tokens so far, in all."""

    @classmethod
    def follow(
        cls,
        past: Past | None,
        real: Bool[Tensor, "batch time"],
        visibility: Visibility | None = None,
    ) -> "Timeline":
        """Put new tokens after ``past``. ``visibility`` may forbid only later positions; None: nothing."""
        queries = real.shape[1]
        total = real.sum(1) if past is None else past.total + real.sum(1)
        before = 0 if past is None else past.total[:, None]
        now = position = (before + real.long().cumsum(1) - 1).clamp_min(0)
        if past is not None:
            real = torch.cat((past.real, real), dim=1)
            position = torch.cat((past.position, now), dim=1)
        mask = None if bool(real.all()) else masks.padding(real)
        # A single newest token sees all that came before it: nothing to forbid.
        if visibility is not None and (queries > 1 or mask is not None):
            mask = masks.both(mask, visibility(now, position))
        return cls(real, position, queries, mask, total)

    @classmethod
    def one_more(cls, past: Past) -> "Timeline":
        """What ``follow`` says of one more real token in every row, sooner."""
        now = past.total[:, None]
        new = torch.ones_like(now, dtype=torch.bool)
        total = past.total + 1
        if past.real.shape[1] == 0:
            return cls(new, now, 1, None, total)
        real = torch.cat((past.real, new), dim=1)
        mask = None if bool(real.all()) else masks.padding(real)
        return cls(real, torch.cat((past.position, now), dim=1), 1, mask, total)

    @property
    def past(self) -> Past:
        return Past(self.real, self.position, self.total)

    @property
    def is_one_real(self) -> bool:
        """One token in every row, and no padding anywhere."""
        return self.queries == 1 and self.mask is None

    @property
    def real_now(self) -> Bool[Tensor, "batch query"]:
        return self.real[:, self.real.shape[1] - self.queries :]

    @property
    def position_now(self) -> Int[Tensor, "batch query"]:
        return self.position[:, self.position.shape[1] - self.queries :]
