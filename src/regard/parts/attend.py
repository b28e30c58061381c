"""The one attention function: every system in this package looks at things through it.

    weights = softmax(score(q, k_i) + bias);  output = Σ weights_i v_i

The readable path computes just that and shows scores and weights to a watcher. The fused path asks torch's
``scaled_dot_product_attention`` for the same numbers; a law test keeps the two equal.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from regard.core.tape import Watch
from regard.parts.scores import Score


def attend(
    query: Float[Tensor, "batch heads query width"],
    keys: Float[Tensor, "batch heads key prepared"],
    values: Float[Tensor, "batch heads key value"],
    score: Score,
    mask: Bool[Tensor, "#batch #heads #query #key"] | None = None,
    bias: Float[Tensor, "#batch #heads #query #key"] | None = None,
    dropout: float = 0.0,
    watch: Watch | None = None,
) -> Float[Tensor, "batch heads query value"]:
    """Look at ``values`` where ``query`` agrees with ``keys`` (already prepared by ``score``).

    A query that may attend to nothing gets zeros.
    """
    if score.scale is not None and watch is None:
        return _fused(query, keys, values, score.scale, mask, bias, dropout)
    scores = score(query, keys)
    if bias is not None:
        scores = scores + bias
    if watch is not None:
        scores = watch("scores", scores)
    weights = masked_softmax(scores, mask)
    if watch is not None:
        weights = watch("weights", weights)
    return F.dropout(weights, dropout) @ values if dropout else weights @ values


def masked_softmax(
    scores: Float[Tensor, "batch heads query key"],
    mask: Bool[Tensor, "#batch #heads #query #key"] | None,
) -> Float[Tensor, "batch heads query key"]:
    """Softmax over what may be attended to: exactly zero elsewhere, all zero where nothing may."""
    if mask is None:
        return scores.softmax(-1)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(~mask, 0.0)


def _fused(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    scale: float,
    mask: Tensor | None,
    bias: Tensor | None,
    dropout: float,
) -> Tensor:
    allowed: Tensor | None = mask
    if bias is not None:
        allowed = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    return F.scaled_dot_product_attention(
        query, keys, values, attn_mask=allowed, dropout_p=dropout, scale=scale
    )
