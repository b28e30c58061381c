"""Tell the words around a word from words drawn from everywhere (Mikolov et al. 2013b eq. 4).

−log σ(y·x) − Σ log σ(−n·x) over ``negatives`` words n, for every word x and word y near it. A group of words
shares its noise: each of its k words counts ``negatives``/k, so that what is expected stays the same, and
all comparisons of a group are one matrix product.
"""

from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

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
        scores = x @ y.mT
        near, span = batch.near.to(x.dtype), batch.around.shape[1]
        # Noise that is the very word to be foreseen is passed over, as in the authors' program.
        others = (batch.around[:, :, None] != batch.noise[:, None, :]).to(x.dtype)
        share = self.negatives / batch.noise.shape[1]
        loss = _cost(scores[..., :span], near) + _cost(-scores[..., span:], near @ others * share)
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
        # A word without any around it foresees nothing.
        there = (number[..., 0] > 0).to(x.dtype)
        y = tables.seen(torch.cat((batch.words, batch.noise), dim=1))
        wanted, noise = torch.split(y, [batch.words.shape[1], batch.noise.shape[1]], dim=1)
        others = (batch.words[:, :, None] != batch.noise[:, None, :]).to(x.dtype)
        share = self.negatives / batch.noise.shape[1]
        loss = _cost((x * wanted).sum(-1), there)
        loss = loss + _cost(-(x @ noise.mT), others * there[..., None] * share)
        return Outcome(loss, int((number > 0).sum()), {})


def _cost(scores: Float[Tensor, "*shape"], weights: Float[Tensor, "*shape"]) -> Float[Tensor, ""]:
    return -(nn.functional.logsigmoid(scores) * weights).sum()
