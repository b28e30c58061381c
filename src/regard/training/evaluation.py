"""How good a model is: its loss on held-out data, and a metric over its answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import exp
from typing import Any

import torch
from pydantic import Field, field_validator
from torch import nn

from regard.core.spec import Spec
from regard.objectives.objective import Objective, Progress
from regard.tasks.metrics import higher_is_better


class EvaluationSpec(Spec):
    metric: str | None = "bleu"
    """What answers are judged by; null: only by the loss."""
    examples: int = Field(default=200, ge=0)
    """Validation examples that are answered, greedily, at every validation; 0: only the loss is computed."""

    @field_validator("metric")
    @classmethod
    def _is_known(cls, name: str | None) -> str | None:
        if name is not None:
            higher_is_better(name)
        return name


@dataclass(frozen=True)
class Validation:
    """Scores of a model on validation data."""

    objective: Objective
    batches: Iterable[Any]
    judged: Callable[[], dict[str, float]]
    """What else there is to say of the model, by name."""
    device: torch.device

    def __call__(self, model: nn.Module) -> dict[str, float]:
        loss = mean_loss(model, self.objective, self.batches, self.device)
        scores = {"loss": loss, "perplexity": exp(min(loss, 700.0))}
        return scores | self.judged()


@torch.inference_mode()
def mean_loss(model: nn.Module, objective: Objective, batches: Iterable[Any], device: torch.device) -> float:
    """Per prediction, over all batches."""
    total, count, carried = 0.0, 0, None
    for batch in batches:
        outcome = objective(model, batch.to(device), Progress(step=0, epoch=0, seed=0), carried)
        carried = outcome.carried
        total, count = total + float(outcome.loss), count + outcome.count
    return total / max(count, 1)
