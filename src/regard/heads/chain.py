"""Labels that know their neighbours: a linear-chain conditional random field.

    s(x, y) = b[y₁] + Σ_t e_t[y_t] + Σ_t A[y_t, y_t+1] + c[y_n],   p(y | x) = exp s(x, y) / Z(x)

(Lafferty et al. 2001; Lample et al. 2016, eq. 1 and 2). Emissions e come from whatever read the sentence;
moves A, begins b and ends c are learned here. Z sums over all sequences of labels that are allowed, one step
of time after another, forward and backward (Rabiner 1989).

A step is log Σ_i exp(α_i + A_ij) for every label j. Written so, it takes labels² exponentials a row; as
exp(α − max α) times exp A it is a product of matrices, and all exponentials are taken before the first step.
That is exact as long as no label falls so far behind the best that its exponential vanishes; if one does, the
slower way is taken. Both directions go in one loop, the backward one through turned rows.

The slope of log Z is what the two passes know anyway (how likely each label and each move is), so no graph is
recorded over the steps.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_NEVER = -math.inf


class Chain(nn.Module):
    """Right padding only. Without anything learned yet it is a softmax over every token by itself."""

    def __init__(self, labels: int, allowed: Bool[Tensor, "{labels}+2 {labels}+2"] | None) -> None:
        """Of ``allowed``, [i, j] says whether j may follow i; ``labels`` stands for what is before the first
        token and ``labels + 1`` for what is after the last (``data/tag_schemes.py`` makes such tables).
        """
        super().__init__()
        self.moves = nn.Parameter(torch.zeros(labels, labels))
        self.begins = nn.Parameter(torch.zeros(labels))
        self.ends = nn.Parameter(torch.zeros(labels))
        if allowed is None:
            allowed = torch.ones(labels + 2, labels + 2, dtype=torch.bool)
        # It follows from the labels, so it is not kept with the weights.
        self.register_buffer("_forbidden", ~allowed, persistent=False)

    def log_likelihood(
        self,
        emissions: Float[Tensor, "batch time labels"],
        wanted: Int[Tensor, "batch time"],
        real: Bool[Tensor, "batch time"],
    ) -> Float[Tensor, "batch"]:
        """log p(wanted | emissions) of every row; −∞ where ``wanted`` makes a forbidden move."""
        scores = self._scores(emissions, real)
        total: Tensor = _LogPartition.apply(*scores, real)  # type: ignore[no-untyped-call]
        found = _score_of(scores, wanted.masked_fill(~real, 0), real)
        # A row of nothing has one labelling, the empty one.
        return torch.where(real[:, 0], found - total, 0.0).to(emissions.dtype)

    @torch.no_grad()
    def best(
        self, emissions: Float[Tensor, "batch time labels"], real: Bool[Tensor, "batch time"]
    ) -> list[list[int]]:
        """The likeliest allowed labels of every row, as many as it has real tokens (Viterbi 1967)."""
        scores = self._scores(emissions, real)
        into = scores.moves.t().contiguous()
        reached = [scores.emissions[:, 0] + scores.begins]
        for emission in scores.emissions.unbind(1)[1:]:
            reached.append((reached[-1][:, None] + into).amax(2) + emission)
        # Where a label came from is asked only of the labels on the path.
        path, lengths = [torch.zeros_like(real[:, 0], dtype=torch.long)], real.sum(1)
        for time in range(len(reached) - 1, -1, -1):
            onward = torch.where((lengths == time + 1)[:, None], scores.ends, into[path[-1]])
            path.append((reached[time] + onward).argmax(1))
        rows = torch.stack(path[:0:-1], 1).tolist()
        return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]

    @torch.no_grad()
    def marginals(
        self, emissions: Float[Tensor, "batch time labels"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time labels"]:
        """How likely each label is at each token, whatever the others are; nothing at padding."""
        scores = self._scores(emissions, real)
        return _occupied(scores, _passes(scores, real), real).transpose(0, 1).to(emissions.dtype)

    def _scores(self, emissions: Tensor, real: Tensor) -> "_Scores":
        """Everything in double precision, in which hardly any label vanishes beside another."""
        wide = torch.float32 if emissions.device.type == "mps" else torch.float64
        forbidden, labels = self.get_buffer("_forbidden"), emissions.shape[2]
        return _Scores(
            emissions.to(wide).masked_fill(~real[..., None], 0.0),
            self.moves.to(wide).masked_fill(forbidden[:labels, :labels], _NEVER),
            self.begins.to(wide).masked_fill(forbidden[labels, :labels], _NEVER),
            self.ends.to(wide).masked_fill(forbidden[:labels, labels + 1], _NEVER),
        )


class _Scores(NamedTuple):
    emissions: Tensor
    moves: Tensor
    begins: Tensor
    ends: Tensor


def _score_of(scores: _Scores, labels: Tensor, real: Tensor) -> Tensor:
    """s(x, y), eq. 1 of Lample et al. 2016."""
    emitted = scores.emissions.gather(2, labels[..., None])[..., 0]
    moved = scores.moves[labels[:, :-1], labels[:, 1:]]
    last = labels.gather(1, _last(real)[:, None])[:, 0]
    inner = torch.where(real, emitted, 0.0).sum(1) + torch.where(real[:, 1:], moved, 0.0).sum(1)
    return scores.begins[labels[:, 0]] + inner + scores.ends[last]


class _LogPartition(torch.autograd.Function):
    """log Z(x) of every row, with expected counts for a slope."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, moves: Tensor, begins: Tensor, ends: Tensor, real: Tensor
    ) -> Tensor:
        forward, backward, total, ctx.careful = _passes(_Scores(emissions, moves, begins, ends), real)
        ctx.save_for_backward(emissions, moves, begins, ends, real, forward, backward, total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor | None, ...]:
        *given, real, forward, backward, total = ctx.saved_tensors
        scores, passes = _Scores(*given), _Passes(forward, backward, total, ctx.careful)
        weight = torch.where(real[:, 0], incoming[0], 0.0)[:, None]
        occupied = _occupied(scores, passes, real) * weight
        count = _moved_carefully if passes.careful else _moved
        moved = count(scores, passes, torch.where(real.t()[1:, :, None], weight, 0.0))
        return occupied.transpose(0, 1), moved, occupied[0].sum(0), _at_last(occupied, real).sum(0), None


class _Passes(NamedTuple):
    """Time first. ``forward`` sums over all ways to a label, ``backward`` over all ways on from it, and both
    count its own emission; ``total`` is log Z."""

    forward: Tensor
    backward: Tensor
    total: Tensor
    careful: bool


def _passes(scores: _Scores, real: Tensor) -> _Passes:
    e = scores.emissions.transpose(0, 1)
    time = torch.arange(len(e), device=e.device)[:, None]
    # Each row from its last real token to its first; padding stays behind.
    turned = torch.where(real.t(), real.sum(1) - 1 - time, time)[:, :, None].expand_as(e)
    both = torch.stack((e, e.gather(0, turned)), 1)
    first = torch.stack((scores.begins, scores.ends))[:, None]
    moves = torch.stack((scores.moves, scores.moves.t()))
    quick = _quick(both, first, moves)
    found = _careful(both, first, moves) if quick is None else quick
    total = (_at_last(found[:, 0], real) + scores.ends).logsumexp(1)
    return _Passes(found[:, 0], found[:, 1].gather(0, turned), total, careful=quick is None)


def _careful(emissions: Tensor, first: Tensor, moves: Tensor) -> Tensor:
    """Scores of all ways to a label: (time, direction, batch, labels)."""
    reached = [first + emissions[0]]
    for emission in emissions[1:]:
        reached.append((reached[-1][..., None] + moves[:, None]).logsumexp(2) + emission)
    return torch.stack(reached)


def _quick(emissions: Tensor, first: Tensor, moves: Tensor) -> Tensor | None:
    """The same by matrix products; None if anything possible might have vanished on the way."""
    tops = emissions.amax(3, keepdim=True)
    from_before, peak, start = moves - moves.amax(), moves.amax(), first.amax(2, keepdim=True)
    at_risk = ((emissions - tops, 0.2), (from_before, 0.1), (first - start, 0.1))
    if any(_behind(x, _limit(x, share)) for x, share in at_risk):
        return None
    weights, odds, best = (emissions - tops).exp(), from_before.exp(), torch.empty_like(tops)
    reached = torch.empty_like(weights)
    sums = (first - start).exp().expand_as(reached[0])
    for time, weight in enumerate(weights):
        sums = (sums if time == 0 else torch.bmm(reached[time - 1], odds)) * weight
        torch.amax(sums, 2, keepdim=True, out=best[time])
        torch.div(sums, best[time], out=reached[time])
    # As long as nothing was below this, one more step could not bring anything down to zero.
    if bool(((reached > 0) & (reached < math.exp(_limit(reached, 0.4)))).any()):
        return None
    tops[0] += start
    tops[1:] += peak
    return reached.log() + (best.log() + tops).cumsum(0)


def _behind(x: Tensor, limit: float) -> bool:
    return bool(((x > _NEVER) & (x < limit)).any())


def _limit(x: Tensor, share: float) -> float:
    """So much of the way down to the smallest positive number, as a logarithm."""
    return share * math.log(torch.finfo(x.dtype).tiny)


def _occupied(scores: _Scores, passes: _Passes, real: Tensor) -> Tensor:
    """p(y_t = j | x), time first."""
    together = passes.forward + passes.backward - scores.emissions.transpose(0, 1) - passes.total[:, None]
    return torch.where(real.t()[:, :, None] & (passes.forward > _NEVER), together.exp(), 0.0)


def _moved(scores: _Scores, passes: _Passes, weight: Tensor) -> Tensor:
    """How often each move is expected, over all rows and times in one product of matrices."""
    top, peak = passes.forward[:-1].amax(2, keepdim=True), scores.moves.amax()
    onward = passes.backward[1:] + (top + peak - passes.total[:, None])
    # Sums go on through padding and may grow without bound there.
    onward = weight * onward.masked_fill(weight == 0, _NEVER).exp()
    out_of = (passes.forward[:-1] - top).exp()
    return (scores.moves - peak).exp() * (out_of.flatten(0, 1).t() @ onward.flatten(0, 1))


def _moved_carefully(scores: _Scores, passes: _Passes, weight: Tensor) -> Tensor:
    counts, onward = torch.zeros_like(scores.moves), passes.backward - passes.total[:, None]
    for before, after, share in zip(passes.forward[:-1], onward[1:], weight[:, :, :, None], strict=True):
        pairs = before[:, :, None] + scores.moves + after[:, None]
        counts += (share * pairs.masked_fill(share == 0, _NEVER).exp()).sum(0)
    return counts


def _last(real: Tensor) -> Tensor:
    return (real.sum(1) - 1).clamp_min(0)


def _at_last(x: Tensor, real: Tensor) -> Tensor:
    """Of each row what is at its last real token; time comes first."""
    return x[_last(real), torch.arange(len(real), device=x.device)]
