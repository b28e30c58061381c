"""The one attention function: every system in this package looks at things through it.

    weights = softmax(score(q, k_i) + bias);  output = Σ weights_i v_i

The readable path computes just that and shows scores and weights to a watcher. Two others give the same
numbers sooner, and tests keep all three equal. The fused path is torch's ``scaled_dot_product_attention``.
The batched path is for learning from short sequences on a processor: there that function takes each sentence
and head by itself, and is slow above all in its gradient.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from regard.core.tape import Watch
from regard.parts.dropout import dropout as drop
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
    # On a processor torch drops weights by way of the readable path, at the price of its slow random numbers.
    slow = dropout > 0.0 and query.is_cpu
    if score.scale is not None and watch is None and not slow:
        if _is_better_batched(query, keys, values, bias):
            return _batched(query, keys, values, score.scale, mask, bias)
        return _fused(query, keys, values, score.scale, mask, bias, dropout)
    scores = score(query, keys)
    if bias is not None:
        scores = scores + bias
    if watch is not None:
        scores = watch("scores", scores)
        if mask is not None:
            mask = watch("allowed", mask.expand_as(scores))
    weights = masked_softmax(scores, mask)
    if watch is not None:
        weights = watch("weights", weights)
    return drop(weights, dropout) @ values


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


_SHORT = 48
"""Keys up to which batched matrix products were faster than torch's fused attention with its gradient."""


def _is_better_batched(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> bool:
    learning = torch.is_grad_enabled() and (query.requires_grad or keys.requires_grad or values.requires_grad)
    # Where a bias is learned, torch has no fused attention on a processor.
    learned_bias = bias is not None and bias.requires_grad
    return query.is_cpu and learning and keys.shape[2] > 0 and (learned_bias or keys.shape[2] <= _SHORT)


def _batched(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    scale: float,
    mask: Tensor | None,
    bias: Tensor | None,
) -> Tensor:
    added = bias
    if mask is not None:
        allowed = query.new_zeros(()) if bias is None else bias
        added = torch.where(mask, allowed, torch.finfo(query.dtype).min)
    found: Tensor = _Batched.apply(query, keys, values, scale, added)  # type: ignore[no-untyped-call]
    if mask is not None:
        sighted = mask.any(-1, keepdim=True)
        if not bool(sighted.all()):  # rare: a query that may attend to nothing
            found = found * sighted
    return found


class _Batched(torch.autograd.Function):
    """All sentences and heads in one matrix product each way; the weights are kept, not computed again.

    With P = softmax(S), S = scale · Q Kᵀ + bias:  ∂V = Pᵀ ∂O,  ∂P = ∂O Vᵀ,  ∂S = P ⊙ (∂P − Σ_k ∂P P),
    ∂Q = scale · ∂S K,  ∂K = scale · ∂Sᵀ Q,  and ∂bias = ∂S, summed where one bias serves several.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, keys: Tensor, values: Tensor, scale: float, bias: Tensor | None
    ) -> Tensor:
        batch, heads, queries, _ = query.shape
        query, keys, values = (part.flatten(0, 1) for part in (query, keys, values))
        scores = _scaled_product(query, keys.transpose(1, 2), scale)
        if bias is not None:
            scores.view(batch, heads, queries, -1).add_(bias)
        weights = torch.softmax(scores, -1, out=scores)
        ctx.scale, ctx.bias_shape = scale, None if bias is None else bias.shape
        ctx.save_for_backward(query, keys, values, weights)
        return torch.bmm(weights, values).view(batch, heads, queries, -1)

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, values, weights = ctx.saved_tensors
        heads = incoming[0].shape[:2]
        slope = incoming[0].flatten(0, 1)
        d_values = torch.bmm(weights.transpose(1, 2), slope)
        d_weights = torch.bmm(slope, values.transpose(1, 2))
        d_scores = torch._softmax_backward_data(d_weights, weights, -1, weights.dtype)
        d_query = _scaled_product(d_scores, keys, ctx.scale)
        d_keys = _scaled_product(d_scores.transpose(1, 2), query, ctx.scale)
        d_bias: Tensor | None = None
        if ctx.needs_input_grad[4]:
            d_bias = d_scores.view(*heads, *d_scores.shape[1:]).sum_to_size(ctx.bias_shape)
        parts = (part.view(*heads, *part.shape[1:]) for part in (d_query, d_keys, d_values))
        return (*parts, None, d_bias)


def _scaled_product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """scale · left @ right in one pass."""
    room = left.new_empty(len(left), left.shape[1], right.shape[2])
    return torch.baddbmm(room, left, right, beta=0, alpha=scale)
