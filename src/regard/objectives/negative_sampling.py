"""Tell the words around a word from words drawn from everywhere (Mikolov et al. 2013b eq. 4).

−log σ(y·x) − Σ log σ(−n·x) over ``negatives`` words n, for every word x and word y near it. A group of words
shares its noise: each of its k words counts ``negatives``/k, so that what is expected stays the same, and
all comparisons of a group are one matrix product.
"""

from typing import Any, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from regard.core.state import State
from regard.objectives.objective import Objective, ObjectiveSpec, Outcome, Progress
from regard.parts.around import by_place, mean_around


@runtime_checkable
class TwoTables(Protocol):
    def own(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]: ...
    def seen(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]: ...


@runtime_checkable
class WordsAround(Protocol):
    @property
    def line(self) -> Int[Tensor, "places"]: ...
    @property
    def words(self) -> Int[Tensor, "groups group"]: ...
    @property
    def around(self) -> Int[Tensor, "groups span"]: ...
    @property
    def near(self) -> Bool[Tensor, "groups group distances"]: ...
    @property
    def noise(self) -> Int[Tensor, "groups noise"]: ...


class SkipGramSpec(ObjectiveSpec):
    """Every word foresees each of the words around it."""

    negatives: int = Field(default=5, ge=1)
    """Words drawn from everywhere that count against each word that is there."""

    def build(self) -> Objective:
        return SkipGram(self.negatives)


class SkipGram(Objective):
    def __init__(self, negatives: int) -> None:
        self.negatives = negatives

    def __call__(
        self, model: nn.Module, batch: WordsAround, progress: Progress, carried: State = None
    ) -> Outcome:
        tables = cast(TwoTables, model)
        x = tables.own(batch.words)
        y = tables.seen(torch.cat((batch.around, batch.noise), dim=1))
        near = by_place(batch.near).to(x.dtype)
        # Noise that is the very word to be foreseen is passed over, as in the authors' program.
        others = (batch.around[:, :, None] != batch.noise[:, None, :]).to(x.dtype)
        loss = _cost(x, y, near, near @ others * (self.negatives / batch.noise.shape[1]))
        return Outcome(loss, int(batch.near.sum()), {})


class CbowSpec(ObjectiveSpec):
    """The words around a word, taken together, foresee it: their mean is compared with it.

    The gradient of each is its share of the mean's, unlike in the authors' program, which gives each the
    whole (İrsoy et al. 2021).
    """

    negatives: int = Field(default=5, ge=1)
    """Words drawn from everywhere that count against each word that is there."""

    def build(self) -> Objective:
        return Cbow(self.negatives)


class Cbow(Objective):
    def __init__(self, negatives: int) -> None:
        self.negatives = negatives

    def __call__(
        self, model: nn.Module, batch: WordsAround, progress: Progress, carried: State = None
    ) -> Outcome:
        tables = cast(TwoTables, model)
        words, noise = batch.words, batch.noise
        x = mean_around(tables.own(batch.line), batch.near.flatten(0, 1))
        y = tables.seen(torch.cat((words.flatten(), noise.flatten())))
        # A word without any around it foresees nothing.
        there = batch.near.any(-1)
        others = (words[:, :, None] != noise[:, None, :]) & there[..., None]
        loss = told_apart(x.view(*words.shape, -1), y, there, others, self.negatives)
        return Outcome(loss, int(there.sum()), {})


def told_apart(
    x: Float[Tensor, "groups group width"],
    y: Float[Tensor, "compared width"],
    there: Bool[Tensor, "groups group"],
    others: Bool[Tensor, "groups group noise"],
    negatives: int,
) -> Float[Tensor, ""]:
    """−Σ (log σ(wanted·x) + negatives · mean of log σ(−noise·x)), of one wanted word for each x.

    First of ``y`` come the wanted, then the noise of every group; ``there``: where something is wanted at
    all; ``others``: where noise counts, which is not the wanted word itself.
    """
    share = negatives / others.shape[2]
    weights = torch.cat((there[..., None].to(x.dtype), others.to(x.dtype) * share), dim=-1)
    cost: Tensor = _OneWanted.apply(x, y, weights)  # type: ignore[no-untyped-call]
    return cost


def readable_told_apart(
    x: Float[Tensor, "groups group width"],
    y: Float[Tensor, "compared width"],
    there: Bool[Tensor, "groups group"],
    others: Bool[Tensor, "groups group noise"],
    negatives: int,
) -> Float[Tensor, ""]:
    """The same, term by term."""
    wanted, noise = _wanted_and_noise(x, y)
    own = nn.functional.logsigmoid((x * wanted).sum(-1))
    drawn = nn.functional.logsigmoid(-(x @ noise.mT))
    return -own[there].sum() - drawn[others].sum() * (negatives / others.shape[2])


def _wanted_and_noise(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    groups, group, width = x.shape
    return y[: groups * group].view(x.shape), y[groups * group :].view(groups, -1, width)


class _OneWanted(torch.autograd.Function):
    """−Σ w log σ(± y·x) of the one that is wanted and of noise: as ``_Told``, where most words of ``y`` are
    compared with one x only. What goes to the table lies in one piece."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, weights: Tensor) -> Float[Tensor, ""]:
        wanted, noise = _wanted_and_noise(x, y)
        scores = torch.cat(((x * wanted).sum(-1, keepdim=True), torch.bmm(x, noise.mT).neg_()), dim=-1)
        log = nn.functional.logsigmoid(scores)
        ctx.save_for_backward(x, y, log, weights)
        return -torch.dot(log.flatten(), weights.flatten())

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor) -> tuple[Tensor, Tensor, None]:
        x, y, log, weights = ctx.saved_tensors
        slopes = log.exp().sub_(1).mul_(weights).mul_(incoming[0])
        of_wanted, of_noise = slopes[..., :1], slopes[..., 1:].neg()
        wanted, noise = _wanted_and_noise(x, y)
        of_x = torch.baddbmm(wanted * of_wanted, of_noise, noise)
        of_y = torch.empty_like(y)
        to_wanted, to_noise = _wanted_and_noise(x, of_y)
        torch.mul(x, of_wanted, out=to_wanted)
        torch.bmm(of_noise.mT, x, out=to_noise)
        return of_x, of_y, None


def _cost(
    x: Float[Tensor, "groups group width"],
    y: Float[Tensor, "groups compared width"],
    wanted: Float[Tensor, "groups group wanted"],
    noise: Float[Tensor, "groups group noise"],
) -> Float[Tensor, ""]:
    """−Σ w log σ(±y·x): first of ``y`` come words that may be wanted, then the noise, each with weights."""
    signs = torch.cat((x.new_ones(wanted.shape[-1]), -x.new_ones(noise.shape[-1])))
    cost: Tensor = _Told.apply(x, y, torch.cat((wanted, noise), dim=-1), signs)  # type: ignore[no-untyped-call]
    return cost


class _Told(torch.autograd.Function):
    """−Σ w log σ(s y·x). The slope of a comparison is w s (σ(s y·x) − 1): fewer ways through memory than
    term by term, and what goes to the tables lies as they do."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, y: Tensor, weights: Tensor, signs: Tensor) -> Float[Tensor, ""]:
        log = nn.functional.logsigmoid((x @ y.mT) * signs)
        ctx.save_for_backward(x, y, log, weights, signs)
        return -torch.dot(log.flatten(), weights.flatten())

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, y, log, weights, signs = ctx.saved_tensors
        slopes = log.exp().sub_(1).mul_(weights).mul_(signs * slope)
        return slopes @ y, slopes.mT @ x, None, None
