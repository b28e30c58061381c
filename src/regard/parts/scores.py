"""How well a query and a key agree: the seven scores of the literature behind one contract.

A score may ``prepare`` keys once (they are looked at by many queries) and then compares queries with them.
Every head has parameters of its own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.parts.repeated import Weights, shared

Scoring: TypeAlias = Callable[[Tensor], Tensor]
"""From a query to how well each key agrees with it."""


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

    def repeatedly(self, prepared: Float[Tensor, "batch heads key prepared"]) -> Scoring:
        """Itself with these keys, for one query after another."""
        return lambda query: self(query, prepared)


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
        return by_sigmoid(by_head(query, self.query_weight), prepared, self.vector, None)

    def repeatedly(self, prepared: Float[Tensor, "batch heads key prepared"]) -> Scoring:
        if len(self.vector) > 1 or not torch.is_grad_enabled():
            return super().repeatedly(prepared)
        of_query = Weights(self.query_weight[0].t())
        of_keys = _Squashed(self.vector)
        keys = shared(prepared, of_keys)

        def scores(query: Float[Tensor, "batch 1 query width"]) -> Float[Tensor, "batch 1 query key"]:
            asked = of_query(query.flatten(0, 2)).view(*query.shape[:3], -1)
            return by_sigmoid(asked, keys, self.vector, of_keys)

        return scores


def by_sigmoid(
    query: Float[Tensor, "batch heads query hidden"],
    keys: Float[Tensor, "batch heads key hidden"],
    vector: Float[Tensor, "heads hidden"],
    ledger: "_Squashed | None",
) -> Float[Tensor, "batch heads query key"]:
    """vᵀ tanh(q + k) for all pairs, by tanh x = 2 σ(2x) − 1: torch's σ was ten times as fast as its tanh."""
    scores: Tensor = _AddedAndSquashed.apply(query, keys, vector, ledger)  # type: ignore[no-untyped-call]
    return scores


class _AddedAndSquashed(torch.autograd.Function):
    """With s = σ(2 (q + k)) and slopes g: ∂v = Σ g (2 s − 1), ∂(q + k) = 4 v ⊙ g (s − s²)."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, vector: Tensor, ledger: "_Squashed | None") -> Tensor:
        joined = query[:, :, :, None] + keys[:, :, None]
        halves = joined.mul_(2).sigmoid_()
        ctx.ledger = ledger
        ctx.save_for_backward(halves, vector)
        return torch.einsum("bhqka,ha->bhqk", halves, 2 * vector) - vector.sum(1)[:, None, None]

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        (halves, vector), (slopes,) = ctx.saved_tensors, incoming
        of_vector = 2 * torch.einsum("bhqk,bhqka->ha", slopes, halves) - slopes.sum((0, 2, 3))[:, None]
        steepness = torch.addcmul(halves, halves, halves, value=-1)
        by_slope = 4 * vector[:, None]
        of_query = (slopes[:, :, :, None] @ steepness)[:, :, :, 0] * by_slope
        if ctx.ledger is not None:
            ctx.ledger.note(slopes, steepness)
            return of_query, None, of_vector, None
        of_keys = steepness.mul_(slopes[..., None]).sum(2).mul_(by_slope)
        return of_query, of_keys, of_vector, None


class _Squashed:
    """The gradient of keys that were added and squashed again and again; by what all times have in common,
    4 v, it is multiplied once."""

    def __init__(self, vector: Float[Tensor, "heads hidden"]) -> None:
        self._vector = vector
        self._sum: Tensor | None = None

    def note(
        self,
        slopes: Float[Tensor, "batch heads query key"],
        steepness: Float[Tensor, "batch heads query key hidden"],
    ) -> None:
        here = slopes[..., None]
        for query in range(slopes.shape[2]):
            if self._sum is None:
                self._sum = steepness[:, :, query] * here[:, :, query]
            else:
                self._sum.addcmul_(steepness[:, :, query], here[:, :, query])

    def close(self) -> Tensor:
        assert self._sum is not None, "no gradient has come by"
        return self._sum.mul_(4 * self._vector.detach()[:, None])


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
