"""What all language models have in common: running text, next tokens, a rate that falls to zero, drawing."""

from regard.data.text import TextSpec
from regard.models.model import ModelSpec
from regard.objectives.running_text import RunningTextSpec
from regard.recipes.system import SystemSpec
from regard.search.sampling import SamplingSpec
from regard.tasks.continuation import ContinuationSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.optimisation import OptimiserSpec
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def running_text(
    data: TextSpec,
    model: ModelSpec,
    optimiser: OptimiserSpec,
    peak: float,
    warmup: int,
    clip: float = 1.0,
    objective: RunningTextSpec | None = None,
) -> SystemSpec:
    carries = data.order == "running"
    return SystemSpec(
        data=data,
        model=model,
        objective=objective or RunningTextSpec(),
        training=TrainingSpec(
            minutes=30,
            optimiser=optimiser,
            schedule=Linear(peak=peak, warmup=warmup),
            clip=clip,
            validation=ValidationSpec(every=500),
        ),
        task=ContinuationSpec(
            carries=carries, window=data.window, context=data.window // 2, backwards=data.backwards
        ),
        search=SamplingSpec(longest_ratio=0.0, longest_extra=100),
        evaluation=EvaluationSpec(metric=None),
    )
