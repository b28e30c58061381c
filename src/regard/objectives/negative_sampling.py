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


@runtime_checkable
class TwoTables(Protocol):
    def own(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]: ...
    def seen(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]: ...


@runtime_checkable
class WordsAround(Protocol):
    @property
    def words(self) -> Int[Tensor, "groups group"]: ...
    @property
    def around(self) -> Int[Tensor, "groups span"]: ...
    @property
    def near(self) -> Bool[Tensor, "groups group span"]: ...
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
        near = batch.near.to(x.dtype)
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
        around = tables.own(batch.around)
        near = batch.near.to(around.dtype)
        number = near.sum(-1, keepdim=True)
        x = (near / number.clamp(min=1)) @ around
        others = batch.words[:, :, None] != batch.noise[:, None, :]
        loss = told_apart(
            # A word without any around it foresees nothing.
            x,
            tables.seen(batch.words),
            tables.seen(batch.noise),
            others,
            self.negatives,
            number[..., 0] > 0,
        )
        return Outcome(loss, int((number > 0).sum()), {})


def told_apart(
    x: Float[Tensor, "groups group width"],
    wanted: Float[Tensor, "groups group width"],
    noise: Float[Tensor, "groups noise width"],
    others: Bool[Tensor, "groups group noise"],
    negatives: int,
    there: Bool[Tensor, "groups group"] | None = None,
) -> Float[Tensor, ""]:
    """−Σ (log σ(wanted·x) + negatives · mean of log σ(−noise·x)), of one wanted word for each x.

    ``others``: where noise is not the wanted word itself; ``there``: where something is wanted at all.
    """
    weights = others.to(x.dtype) * (negatives / noise.shape[1])
    own = nn.functional.logsigmoid((x * wanted).sum(-1))
    if there is not None:
        weights, own = weights * there[..., None], own * there
    return _cost(x, noise, weights[..., :0], weights) - own.sum()


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
