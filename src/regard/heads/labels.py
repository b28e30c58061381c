"""One answer for a whole row: a class or a number, from all its states made one."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.sequences import Places
from regard.heads.head import Cost, Head, HeadSpec, States
from regard.parts.dropout import Dropout
from regard.parts.feedforward import ACTIVATIONS, initialise, type_of_activation
from regard.parts.pooling import FirstSpec, PoolingSpec


class SummarySpec(HeadSpec):
    """What all heads have in common that answer once for a row."""

    pooling: PoolingSpec = FirstSpec()
    hidden: int = Field(default=0, ge=0)
    """Width of a layer between the summary and the answer; 0: none."""
    activation: type_of_activation = "tanh"
    """Of that layer."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Of the summary, and of the layer between."""
    together: int = Field(default=1, ge=1)
    """Rows that belong together, such as both orders of a pair: their summaries are added."""

    def summary(self) -> PoolingSpec:
        return self.pooling


class LabelSpec(SummarySpec):
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Share of the probability spread over all classes."""

    def build(self, width: int, labels: int) -> "Label":
        return Label(self, width, labels)


class NumberSpec(SummarySpec):
    def build(self, width: int, labels: int) -> "Number":
        return Number(self, width, 1)


class ChoiceSpec(SummarySpec):
    """A score for every row; of rows that belong together one is right."""

    def build(self, width: int, labels: int) -> "Choice":
        return Choice(self, width, 1)


class Summary(Head):
    """W φ(V pooled)."""

    def __init__(self, spec: SummarySpec, width: int, answers: int) -> None:
        super().__init__()
        self.pooling, self.activation = spec.pooling, ACTIVATIONS[spec.activation]
        pooled = spec.pooling.width(width)
        self.dropout, self.together = Dropout(spec.dropout), spec.together
        self.between = initialise(nn.Linear(pooled, spec.hidden)) if spec.hidden else None
        self.answers = initialise(nn.Linear(spec.hidden or pooled, answers))

    def forward(self, states: States) -> Float[Tensor, "examples answers"]:
        summary = self.pooling.pool(states.x, states.real)
        pooled = self.dropout(
            summary.view(-1, self.together, summary.shape[1]).sum(1) if self.together > 1 else summary
        )
        if self.between is not None:
            pooled = self.dropout(self.activation(self.between(pooled)))
        scores: Tensor = self.answers(pooled)
        return scores


class Label(Summary):
    def __init__(self, spec: LabelSpec, width: int, labels: int) -> None:
        super().__init__(spec, width, labels)
        self.smoothing = spec.smoothing

    def cost(
        self,
        scores: Float[Tensor, "batch labels"],
        wanted: Int[Tensor, "batch 1"] | Float[Tensor, "batch 1"],
        places: Places | None,
    ) -> Cost:
        smoothing = self.smoothing if self.training else 0.0
        loss = F.cross_entropy(scores, wanted[:, 0], reduction="sum", label_smoothing=smoothing)
        return Cost(loss, len(scores))


class Number(Summary):
    """Its cost is the squared error."""

    def cost(
        self,
        scores: Float[Tensor, "batch 1"],
        wanted: Int[Tensor, "batch 1"] | Float[Tensor, "batch 1"],
        places: Places | None,
    ) -> Cost:
        return Cost(F.mse_loss(scores, wanted.to(scores.dtype), reduction="sum"), len(scores))


class Choice(Summary):
    """A softmax over the rows of one question (Radford et al. 2018 §3.3; Devlin et al. 2019 §4.4)."""

    def cost(
        self,
        scores: Float[Tensor, "batch 1"],
        wanted: Int[Tensor, "examples 2"] | Float[Tensor, "examples 2"],
        places: Places | None,
    ) -> Cost:
        """``wanted``: which row is right, and how many there are to choose among."""
        right, among = wanted.unbind(1)
        table = scores.view(len(wanted), -1)
        beyond = torch.arange(table.shape[1], device=table.device) >= among[:, None]
        loss = F.cross_entropy(table.masked_fill(beyond, -torch.inf), right, reduction="sum")
        return Cost(loss, len(wanted))
