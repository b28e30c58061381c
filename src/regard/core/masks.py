"""Masks: boolean, True = may attend, broadcastable to (batch, heads, query, key).

Built by name from positions, combined with ``&``. A mixer may look at less than its mask allows,
never at more.
"""

from typing import TypeAlias

from jaxtyping import Bool, Int
from torch import Tensor

Mask: TypeAlias = Bool[Tensor, "#batch #heads #query #key"]


def padding(real: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch 1 1 key"]:
    """Every query may look at every real token."""
    return real[:, None, None, :]


def causal(
    query: Int[Tensor, "#batch query"], key: Int[Tensor, "#batch key"]
) -> Bool[Tensor, "#batch 1 query key"]:
    """No position sees a later one."""
    return key[:, None, None, :] <= query[:, None, :, None]


def prefix(
    query: Int[Tensor, "#batch query"],
    key: Int[Tensor, "#batch key"],
    length: Int[Tensor, "#batch"],
) -> Bool[Tensor, "#batch 1 query key"]:
    """Causal, but the first ``length`` positions are seen by all (Raffel et al. 2020, fig. 4; UniLM)."""
    return causal(query, key) | (key < length[:, None])[:, None, None, :]


def window(
    query: Int[Tensor, "#batch query"], key: Int[Tensor, "#batch key"], radius: int
) -> Bool[Tensor, "#batch 1 query key"]:
    """Only the ``radius`` nearest positions on each side (Vaswani et al. 2017 §4, restricted attention)."""
    return (key[:, None, None, :] - query[:, None, :, None]).abs() <= radius


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    """``left & right``, where None means that everything is allowed."""
    if left is None:
        return right
    return left if right is None else left & right
