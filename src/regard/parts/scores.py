"""How well a query and a key agree: the seven scores of the literature behind one contract.

A score may ``prepare`` keys once (they are looked at by many queries) and then compares queries with them.
Every head has parameters of its own.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.spec import Spec


class Score(nn.Module, ABC):
    """score(q, k_i) for all pairs. ``scale`` is set when the score is no more than scale · q·k."""

    scale: float | None = None
    by_slot: bool = False
    """Tells keys apart by their place in the tensor, so they must not move: a memory, not a growing past."""
    formula: ClassVar[str] = "score(q, k)"
    """What is computed, for people; k′ is a key as ``prepare`` left it."""

    def prepare(
        self, keys: Float[Tensor, "batch heads key width"]
    ) -> Float[Tensor, "batch heads key prepared"]:
        return keys

    @abstractmethod
    def forward(
        self,
        query: Float[Tensor, "batch heads query width"],
        prepared: Float[Tensor, "batch heads key prepared"],
    ) -> Float[Tensor, "batch heads query key"]: ...


def by_head(
    x: Float[Tensor, "batch heads time width"], weight: Float[Tensor, "heads width out"]
) -> Float[Tensor, "batch heads time out"]:
    """x @ weight with a matrix per head: one product per head, not one per row of the batch."""
    batch, heads, time, _ = x.shape
    y = torch.bmm(x.transpose(0, 1).reshape(heads, batch * time, -1), weight)
    return y.view(heads, batch, time, -1).transpose(0, 1)


class ScoreSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "dot": "regard.parts.scores:DotSpec",
        "scaled": "regard.parts.scores:ScaledSpec",
        "general": "regard.parts.scores:GeneralSpec",
        "concat": "regard.parts.scores:ConcatSpec",
        "additive": "regard.parts.scores:AdditiveSpec",
        "cosine": "regard.parts.scores:CosineSpec",
        "location": "regard.parts.scores:LocationSpec",
    }

    def build(self, query_width: int, key_width: int, heads: int = 1) -> Score:
        raise NotImplementedError


class DotProduct(Score):
    """scale · q·k (Luong et al. 2015 "dot"; with scale 1/√d_k Vaswani et al. 2017 eq. 1)."""

    formula = "scale · q·k"

    def __init__(self, query_width: int, key_width: int, scale: float) -> None:
        super().__init__()
        if query_width != key_width:
            raise UsageError(
                f"a dot product needs queries and keys of one width, got {query_width} and {key_width} "
                "(the scores 'general' and 'additive' join different widths)"
            )
        self.scale = scale

    def forward(
        self,
        query: Float[Tensor, "batch heads query width"],
        prepared: Float[Tensor, "batch heads key prepared"],
    ) -> Float[Tensor, "batch heads query key"]:
        assert self.scale is not None
        return query @ prepared.transpose(-1, -2) * self.scale


class DotSpec(ScoreSpec):
    def build(self, query_width: int, key_width: int, heads: int = 1) -> Score:
        return DotProduct(query_width, key_width, scale=1.0)


class ScaledSpec(ScoreSpec):
    def build(self, query_width: int, key_width: int, heads: int = 1) -> Score:
        return DotProduct(query_width, key_width, scale=1 / math.sqrt(key_width))


class General(Score):
    """qᵀ W k (Luong et al. 2015 "general")."""

    formula = "q·k′ with k′ = Wᵀ k"

    def __init__(self, query_width: int, key_width: int, heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, key_width, query_width))
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def prepare(
        self, keys: Float[Tensor, "batch heads key width"]
    ) -> Float[Tensor, "batch heads key prepared"]:
        return by_head(keys, self.weight)

    def forward(
        self,
        query: Float[Tensor, "batch heads query width"],
        prepared: Float[Tensor, "batch heads key prepared"],
    ) -> Float[Tensor, "batch heads query key"]:
        return query @ prepared.transpose(-1, -2)


class GeneralSpec(ScoreSpec):
    def build(self, query_width: int, key_width: int, heads: int = 1) -> Score:
        return General(query_width, key_width, heads)


class Additive(Score):
    """vᵀ tanh(W₁ q + W₂ k) (Bahdanau et al. 2015, app. A.1.2).

    vᵀ tanh(W [q; k]) (Luong et al. 2015 "concat") is the same function with W = [W₁ W₂] written in one
    piece, so both kinds build this module.
    """

    formula = "vᵀ tanh(W₁ q + k′) with k′ = W₂ k"

    def __init__(self, query_width: int, key_width: int, hidden: int, heads: int) -> None:
        super().__init__()
        joined = torch.empty(heads, query_width + key_width, hidden)
        for weight in joined:
            nn.init.xavier_uniform_(weight)
        self.query_weight = nn.Parameter(joined[:, :query_width].clone())
        self.key_weight = nn.Parameter(joined[:, query_width:].clone())
        self.vector = nn.Parameter(torch.empty(heads, hidden).uniform_(-1, 1) * hidden**-0.5)

    def prepare(
        self, keys: Float[Tensor, "batch heads key width"]
    ) -> Float[Tensor, "batch heads key prepared"]:
        return by_head(keys, self.key_weight)

    def forward(
        self,
        query: Float[Tensor, "batch heads query width"],
        prepared: Float[Tensor, "batch heads key prepared"],
    ) -> Float[Tensor, "batch heads query key"]:
        joined = by_head(query, self.query_weight)[:, :, :, None] + prepared[:, :, None]
        if torch.is_grad_enabled():
            return torch.einsum("bhqka,ha->bhqk", joined.tanh(), self.vector)
        # tanh x = 2 σ(2x) − 1, and torch's σ was ten times as fast as its tanh on a processor.
        halves = torch.einsum("bhqka,ha->bhqk", joined.mul_(2).sigmoid_(), 2 * self.vector)
        return halves - self.vector.sum(1)[:, None, None]


class AdditiveSpec(ScoreSpec):
    hidden: int | None = Field(default=None, gt=0)
    """Width of the tanh layer; as wide as the query when not given."""

    def build(self, query_width: int, key_width: int, heads: int = 1) -> Score:
        return Additive(query_width, key_width, self.hidden or query_width, heads)


class ConcatSpec(AdditiveSpec):
    """Luong's name for the additive score."""


class Cosine(Score):
    """β · cos(q, k), with a learned sharpness β per head (Graves et al. 2014 eq. 5–6)."""

    formula = "β cos(q, k)"

    def __init__(self, query_width: int, key_width: int, heads: int) -> None:
        super().__init__()
        if query_width != key_width:
            raise UsageError(f"a cosine needs one width for queries and keys: {query_width} and {key_width}")
        self.log_sharpness = nn.Parameter(torch.zeros(heads, 1, 1))

    def prepare(
        self, keys: Float[Tensor, "batch heads key width"]
    ) -> Float[Tensor, "batch heads key prepared"]:
        return F.normalize(keys, dim=-1)

    def forward(
        self,
        query: Float[Tensor, "batch heads query width"],
        prepared: Float[Tensor, "batch heads key prepared"],
    ) -> Float[Tensor, "batch heads query key"]:
        return F.normalize(query, dim=-1) @ prepared.transpose(-1, -2) * self.log_sharpness.exp()


class CosineSpec(ScoreSpec):
    def build(self, query_width: int, key_width: int, heads: int = 1) -> Score:
        return Cosine(query_width, key_width, heads)


class Location(Score):
    """softmax(W q): where to look is read off the query alone (Luong et al. 2015 eq. 8)."""

    formula = "W q, by place"

    by_slot = True

    def __init__(self, query_width: int, longest: int, heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, query_width, longest))
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def forward(
        self,
        query: Float[Tensor, "batch heads query width"],
        prepared: Float[Tensor, "batch heads key prepared"],
    ) -> Float[Tensor, "batch heads query key"]:
        keys, longest = prepared.shape[2], self.weight.shape[2]
        if keys > longest:
            raise UsageError(f"the location score knows {longest} source positions, the input has {keys}")
        return query @ self.weight[:, :, :keys]


class LocationSpec(ScoreSpec):
    longest: int = Field(default=256, gt=0)
    """Source positions that can be told apart."""

    def build(self, query_width: int, key_width: int, heads: int = 1) -> Score:
        return Location(query_width, self.longest, heads)
