"""How good a model is: its loss on held-out data, and a metric over its answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import torch
from pydantic import Field, field_validator
from torch import nn

from regard.core.spec import Spec
from regard.objectives.objective import Objective, Progress
from regard.training.metrics import metric_named

Answering = Callable[[Sequence[str]], list[str]]


class EvaluationSpec(Spec):
    metric: str = "bleu"
    """What answers are judged by."""
    examples: int = Field(default=200, ge=0)
    """Validation examples that are answered, greedily, at every validation; 0: only the loss is computed."""

    @field_validator("metric")
    @classmethod
    def _is_known(cls, name: str) -> str:
        metric_named(name)
        return name


@dataclass(frozen=True)
class Validation:
    """Scores of a model on validation data."""

    objective: Objective
    batches: Iterable[Any]
    texts: Sequence[tuple[str, str]]
    answer: Answering
    metric: str
    device: torch.device

    def __call__(self, model: nn.Module) -> dict[str, float]:
        loss = mean_loss(model, self.objective, self.batches, self.device)
        scores = {"loss": loss, "perplexity": exp(min(loss, 700.0))}
        if self.texts:
            sources, references = ([pair[side] for pair in self.texts] for side in (0, 1))
            scores[self.metric] = metric_named(self.metric).compute(self.answer(sources), references).value
        return scores


@torch.inference_mode()
def mean_loss(model: nn.Module, objective: Objective, batches: Iterable[Any], device: torch.device) -> float:
    """Per prediction, over all batches."""
    total, count = 0.0, 0
    for batch in batches:
        outcome = objective(model, batch.to(device), Progress(step=0, epoch=0, seed=0))
        total, count = total + float(outcome.loss), count + outcome.count
    return total / max(count, 1)
