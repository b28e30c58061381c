"""The spec of a training: how long, how steps are taken, what counts as better, what is kept."""

from pydantic import Field, field_validator, model_validator

from regard.core.precision import Precision
from regard.core.spec import Spec
from regard.tasks.metrics import higher_is_better
from regard.training.learning import LearningSpec, Lesson
from regard.training.optimisation import Adam, OptimiserSpec
from regard.training.result import TrainingResult
from regard.training.schedules import InverseSqrt, ScheduleSpec
from regard.training.thawing import ThawingSpec


class ValidationSpec(Spec):
    """When to validate, and what the best weights are."""

    every: int = Field(default=500, ge=1)
    """Steps between validations; the last step is always validated."""
    watch: str = "loss"
    """The score by which weights are better: "loss" or a metric."""
    patience: int | None = Field(default=None, ge=1)
    """Validations in a row without a new best before training stops early; null: never."""

    @field_validator("watch")
    @classmethod
    def _is_known(cls, name: str) -> str:
        higher_is_better(name)
        return name


class AveragingSpec(Spec):
    """Averaged weights that compete with the best ones at the end, judged by validation."""

    ema: float | None = Field(default=None, gt=0, lt=1)
    """Memory of an exponential moving average over all steps; null: none."""
    last: int = Field(default=0, ge=0)
    """How many of the last validated weights to average; 0 or 1: none (Vaswani et al. 2017, §6.1)."""


class CheckpointSpec(Spec):
    """When to save everything; the first place, every validation and the end are always saved."""

    seconds: float | None = Field(default=60.0, gt=0)
    """Time between checkpoints; null: do not go by time."""
    steps: int | None = Field(default=None, ge=1)
    """Steps between checkpoints; null: do not go by steps."""


class TrainingSpec(LearningSpec):
    """Training ends with the first of ``steps`` (or ``epochs``), ``minutes`` and ``validation.patience`` that
    is used up."""

    steps: int | None = Field(default=None, ge=1)
    """Updates of the weights, in all."""
    epochs: float | None = Field(default=None, gt=0)
    """Times that all data are gone through, where steps are not given."""
    minutes: float | None = Field(default=None, gt=0)
    """Wall-clock time, in all, counted over all continuations."""
    optimiser: OptimiserSpec = Adam()
    """How gradients become updates."""
    schedule: ScheduleSpec = InverseSqrt(warmup=1000)
    """How the learning rate moves."""
    clip: float | None = Field(default=1.0, gt=0)
    """Largest norm of the whole gradient; null: no limit."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients make one step."""
    precision: Precision = "auto"
    """Numbers whose products are computed while learning: float32, bfloat16 (twice as fast on some
    processors, with weights and sums kept in float32), or auto, bfloat16 on such processors."""
    shards: int = Field(default=2, ge=1)
    """Parts of a large batch that are computed side by side, each with its share of the cores; 1: none."""
    validation: ValidationSpec = ValidationSpec()
    """When to validate, and what counts as better."""
    averaging: AveragingSpec = AveragingSpec()
    """Averages of weights to try at the end."""
    thawing: ThawingSpec = ThawingSpec()
    """Which layers learn, and how fast, where a model starts from another."""
    checkpoints: CheckpointSpec = CheckpointSpec()
    """When to save everything."""

    @model_validator(mode="after")
    def _ends_and_fits(self) -> "TrainingSpec":
        ends = self.steps is not None or self.epochs is not None or self.minutes is not None
        if not ends and self.validation.patience is None:
            raise ValueError("training would never end: give steps, epochs, minutes or validation.patience")
        if self.schedule.needs_steps and not ends:
            raise ValueError(
                f"the {self.schedule.kind()} schedule must know when training ends: give steps, epochs or "
                "minutes, or choose constant, inverse_sqrt or exponential"
            )
        self.schedule.build(self.steps)
        return self

    def counted(self, batches: int) -> "TrainingSpec":
        """In steps, where an epoch has so many batches."""
        if self.epochs is None or self.steps is not None:
            return self
        steps = max(1, round(self.epochs * batches / self.accumulate))
        return self.model_copy(update={"steps": steps, "epochs": None})

    @property
    def planned_by_clock(self) -> bool:
        """The schedule must know an end that only the clock knows."""
        return self.schedule.needs_steps and self.steps is None

    def learn(self, lesson: Lesson) -> TrainingResult:
        from regard.training.loop import train  # which is built on this spec

        spec = self if self.epochs is None else self.counted(len(lesson.data.epoch(0)))
        return train(
            lesson.model,
            lesson.objective,
            lesson.data,
            lesson.validate,
            spec,
            lesson.folder,
            lesson.seed,
            lesson.watchers,
            lesson.device,
            prefetch=lesson.prefetch,
        )

    def may_differ(self, prefix: str = "training.") -> list[str]:
        """Fields that may change when a run goes on: they decide when it ends.

        No step already taken depends on them. The rate of those to come may: one that falls to zero at the
        end rises again when the end moves.
        """
        ends = [
            "steps",
            "epochs",
            "minutes",
            "validation.patience",
            "checkpoints.seconds",
            "checkpoints.steps",
        ]
        return [prefix + name for name in ends]
