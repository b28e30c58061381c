"""Where a token stands: added to the input (sinusoidal, learned) or felt inside attention (the rest).

All take positions as integers, so that padding, carried state and packed sequences need no special case.
"""

import math
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.spec import Spec

# ---------------------------------------------------------------- added to the input


class Positions(nn.Module):
    """From positions to vectors."""

    longest: int | None = None
    """How many positions there are; None when there is no limit."""


class PositionSpec(Spec):
    """Builds ``Positions``, or None for no positions at all."""

    kinds: ClassVar[dict[str, str]] = {
        "none": "regard.parts.positions:NoPositionSpec",
        "sinusoidal": "regard.parts.positions:SinusoidalSpec",
        "learned": "regard.parts.positions:LearnedSpec",
    }

    def build(self, width: int) -> Positions | None:
        raise NotImplementedError


class NoPositionSpec(PositionSpec):
    def build(self, width: int) -> Positions | None:
        return None


class Sinusoidal(Positions):
    """sin(pos/10000^(2i/d)) at 2i, cos of the same at 2i+1 (Vaswani et al. 2017 §3.5)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("frequency", frequencies(width), persistent=False)
        self.frequency: Tensor
        self.width = width

    def forward(self, position: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        angle = position[..., None] * self.frequency
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[..., : self.width]


class SinusoidalSpec(PositionSpec):
    def build(self, width: int) -> Positions | None:
        return Sinusoidal(width)


class Learned(Positions):
    """One trained vector per position; there is none beyond the last."""

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.longest = longest
        self.table = nn.Embedding(longest, width)
        nn.init.normal_(self.table.weight, std=width**-0.5)

    def forward(self, position: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        longest, last = self.table.num_embeddings, int(position.max()) if position.numel() else 0
        if last >= longest:
            raise UsageError(f"an input of {last + 1} tokens, but this model has learned {longest} positions")
        embedded: Tensor = self.table(position)
        return embedded


class LearnedSpec(PositionSpec):
    longest: int = Field(default=512, gt=0)
    """Number of positions; longer inputs are refused."""

    def build(self, width: int) -> Positions | None:
        return Learned(self.longest, width)


def frequencies(width: int, base: float = 10_000.0) -> Float[Tensor, "half"]:
    """1/base^(2i/d) for i = 0 … ⌈d/2⌉−1."""
    return torch.exp(torch.arange(0, width, 2).float() * (-math.log(base) / width))


# ---------------------------------------------------------------- felt inside attention


class PairPositions(nn.Module):
    """Positions as attention feels them: queries and keys may be turned, scores may get a bias."""

    felt = True

    def turn(
        self, x: Float[Tensor, "batch heads time width"], position: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "batch heads time width"]:
        return x

    def ask(self, query: Float[Tensor, "batch heads time width"]) -> Float[Tensor, "batch heads time width"]:
        """What every query asks for beside its own question."""
        return query

    def bias(
        self,
        query: Float[Tensor, "batch heads query width"],
        query_position: Int[Tensor, "batch query"],
        key_position: Int[Tensor, "batch key"],
    ) -> Float[Tensor, "#batch heads query key"] | None:
        return None


class PairPositionSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "none": "regard.parts.positions:NoPairPositionSpec",
        "rotary": "regard.parts.positions:RotarySpec",
        "relative": "regard.parts.positions:RelativeSpec",
        "buckets": "regard.parts.positions:BucketsSpec",
        "distance": "regard.parts.positions:DistanceSpec",
    }

    def build(self, heads: int, width: int) -> PairPositions:
        raise NotImplementedError


class Unfelt(PairPositions):
    """Attention by itself does not know where a token stands."""

    felt = False


class NoPairPositionSpec(PairPositionSpec):
    def build(self, heads: int, width: int) -> PairPositions:
        return Unfelt()


class Rotary(PairPositions):
    """Turn pairs of coordinates by an angle that grows with position (Su et al. 2021 eq. 34)."""

    def __init__(self, width: int, base: float) -> None:
        super().__init__()
        self.register_buffer("frequency", frequencies(width, base), persistent=False)
        self.frequency: Tensor

    def turn(
        self, x: Float[Tensor, "batch heads time width"], position: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "batch heads time width"]:
        angle = position[:, None, :, None] * self.frequency
        if torch.onnx.is_in_onnx_export():  # where there are no complex numbers
            even, odd, cosine, sine = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
            return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1).flatten(-2)
        # Turning a pair is multiplying a complex number: one pass over the memory instead of ten.
        pairs = torch.view_as_complex(x.to(angle.dtype).view(*x.shape[:-1], -1, 2))
        turned = pairs * torch.polar(torch.ones_like(angle), angle)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


class RotarySpec(PairPositionSpec):
    base: float = Field(default=10_000.0, gt=1)

    def build(self, heads: int, width: int) -> PairPositions:
        if width % 2:
            raise UsageError(f"rotary positions turn pairs of coordinates: a head of width {width} is odd")
        return Rotary(width, self.base)


class Relative(PairPositions):
    """A trained vector per clipped distance, compared with the query (Shaw et al. 2018 eq. 4, 5)."""

    def __init__(self, width: int, farthest: int) -> None:
        super().__init__()
        self.farthest = farthest
        self.table = nn.Parameter(torch.empty(2 * farthest + 1, width))
        nn.init.xavier_uniform_(self.table)

    def bias(
        self,
        query: Float[Tensor, "batch heads query width"],
        query_position: Int[Tensor, "batch query"],
        key_position: Int[Tensor, "batch key"],
    ) -> Float[Tensor, "#batch heads query key"] | None:
        distance = key_position[:, None, :] - query_position[:, :, None]
        index = distance.clamp(-self.farthest, self.farthest) + self.farthest
        by_distance: Tensor = query @ self.table.T * float(query.shape[-1]) ** -0.5
        heads = query.shape[1]
        return by_distance.gather(-1, index[:, None].expand(-1, heads, -1, -1))


class RelativeSpec(PairPositionSpec):
    farthest: int = Field(default=16, gt=0)
    """Distances beyond this are treated alike."""

    def build(self, heads: int, width: int) -> PairPositions:
        return Relative(width, self.farthest)


class Buckets(PairPositions):
    """A bias per head and distance bucket, exact when near, logarithmic when far (Raffel et al. 2020)."""

    def __init__(self, heads: int, buckets: int, farthest: int, two_sided: bool) -> None:
        super().__init__()
        self.buckets, self.farthest, self.two_sided = buckets, farthest, two_sided
        self.table = nn.Embedding(buckets, heads)
        nn.init.normal_(self.table.weight, std=0.1)

    def bucket(self, distance: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """``distance`` is key minus query position."""
        count, offset = self.buckets, torch.zeros_like(distance)
        if self.two_sided:
            count //= 2
            offset = (distance > 0).long() * count
            distance = distance.abs()
        else:
            distance = (-distance).clamp_min(0)
        exact = count // 2
        ratio = (distance.clamp_min(1).float() / exact).log() / math.log(self.farthest / exact)
        far = (exact + (ratio * (count - exact)).long()).clamp_max(count - 1)
        return offset + torch.where(distance < exact, distance, far)

    def bias(
        self,
        query: Float[Tensor, "batch heads query width"],
        query_position: Int[Tensor, "batch query"],
        key_position: Int[Tensor, "batch key"],
    ) -> Float[Tensor, "#batch heads query key"] | None:
        distance = key_position[:, None, :] - query_position[:, :, None]
        biases: Tensor = self.table(self.bucket(distance))
        return biases.permute(0, 3, 1, 2)


class BucketsSpec(PairPositionSpec):
    buckets: int = Field(default=32, ge=4, multiple_of=4)
    farthest: int = Field(default=128, gt=0)
    two_sided: bool = True
    """Tell before from after; False in a decoder, which sees no after."""

    def build(self, heads: int, width: int) -> PairPositions:
        exact = self.buckets // (4 if self.two_sided else 2)
        if self.farthest <= exact:
            raise UsageError(
                f"{self.buckets} buckets tell the first {exact} distances apart exactly: farthest must be "
                f"beyond them, got {self.farthest}"
            )
        return Buckets(heads, self.buckets, self.farthest, self.two_sided)


class Distance(PairPositions):
    """(q+u)ᵀk + (q+v)ᵀW r_{i−j}, r sinusoidal: distances without a limit (Dai et al. 2019 §3.3).

    ``ask`` adds u to the query before it is compared, so that here v means the paper's v − u.
    """

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.waves = Sinusoidal(heads * width)
        self.project = nn.Linear(heads * width, heads * width, bias=False)
        nn.init.xavier_uniform_(self.project.weight)
        self.content = nn.Parameter(torch.zeros(heads, 1, width))
        self.place = nn.Parameter(torch.zeros(heads, 1, width))

    def ask(self, query: Float[Tensor, "batch heads time width"]) -> Float[Tensor, "batch heads time width"]:
        return query + self.content

    def bias(
        self,
        query: Float[Tensor, "batch heads query width"],
        query_position: Int[Tensor, "batch query"],
        key_position: Int[Tensor, "batch key"],
    ) -> Float[Tensor, "#batch heads query key"] | None:
        if _is_one_stretch(query_position, key_position):
            # Here distances differ by one from key to key and from query to query, the same in every row.
            gap, keys = int(query_position[0, 0] - key_position[0, 0]), key_position.shape[1]
            nearest, farthest = gap - keys + 1, gap + query_position.shape[1] - 1
            return slid(self._by_distance(query, torch.arange(farthest, nearest - 1, -1)), keys)
        distance = query_position[:, :, None] - key_position[:, None, :]
        nearest, farthest = (int(distance.min()), int(distance.max())) if distance.numel() else (0, 0)
        by_distance = self._by_distance(query, torch.arange(nearest, farthest + 1))
        return by_distance.gather(-1, (distance - nearest)[:, None].expand(-1, query.shape[1], -1, -1))

    def _by_distance(
        self, query: Float[Tensor, "batch heads query width"], distances: Int[Tensor, "distance"]
    ) -> Float[Tensor, "batch heads query distance"]:
        batch, heads, queries, width = query.shape
        waves: Tensor = self.project(self.waves(distances[None].to(query.device))[0].to(query.dtype))
        by_head = waves.view(-1, heads, width).permute(1, 2, 0)
        # Every row is compared with the same waves: one product a head, not one a row and head.
        asked = (query + self.place).transpose(0, 1).reshape(heads, batch * queries, width)
        compared: Tensor = asked @ (by_head * float(width) ** -0.5)
        return compared.view(heads, batch, queries, len(distances)).transpose(0, 1)


def _is_one_stretch(
    query_position: Int[Tensor, "batch query"], key_position: Int[Tensor, "batch key"]
) -> bool:
    """Whether queries and keys both count up one by one, equally far apart in every row."""
    if not query_position.numel() or not key_position.numel():
        return False
    gap = query_position[:, 0] - key_position[:, 0]
    steps = (query_position.diff(), key_position.diff())
    return all(bool((step == 1).all()) for step in steps) and bool((gap == gap[0]).all())


def slid(
    by_distance: Float[Tensor, "batch heads query distance"], keys: int
) -> Float[Tensor, "batch heads query {keys}"]:
    """Row i begins at column queries − 1 − i (Dai et al. 2019 appendix B).

    That is a row of one column less, read off the same memory: no index for every pair, and a gradient that
    is a copy.
    """
    batch, heads, queries, distances = by_distance.shape
    if queries == 1:
        return by_distance
    flat = by_distance.flatten(2)[:, :, queries - 1 : -1]
    return flat.view(batch, heads, queries, distances - 1)[..., :keys]


class DistanceSpec(PairPositionSpec):
    def build(self, heads: int, width: int) -> PairPositions:
        return Distance(heads, width)
