"""Learning rates as pure functions of the step. The first update is step 1."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias

from pydantic import Field

from regard.core.spec import Spec

Schedule: TypeAlias = Callable[[int], float]


class ScheduleSpec(Spec):
    """How the learning rate moves: up in a straight line to ``peak``, then as the kind says."""

    kinds: ClassVar[dict[str, str]] = {
        "constant": "regard.training.schedules:Constant",
        "inverse_sqrt": "regard.training.schedules:InverseSqrt",
        "exponential": "regard.training.schedules:Exponential",
        "cosine": "regard.training.schedules:Cosine",
        "linear": "regard.training.schedules:Linear",
    }
    needs_steps: ClassVar[bool] = False

    peak: float = Field(default=1e-3, gt=0)
    """The highest rate."""
    warmup: int = Field(default=0, ge=0)
    """Steps over which the rate rises from 0 to ``peak``; half of the planned ones at most."""

    def build(self, steps: int | None) -> Schedule:
        """The rate of each step of a run planned for ``steps`` steps (None: not known yet)."""
        warmup = self.rising(steps)

        def rate(step: int) -> float:
            if step <= warmup:
                return self.peak * step / warmup
            return self.peak * self.after_warmup(step, steps or 0)

        return rate

    def rising(self, steps: int | None) -> int:
        """Steps of warm-up in a run planned for ``steps``."""
        return self.warmup if not self.needs_steps or steps is None else min(self.warmup, steps // 2)

    @abstractmethod
    def after_warmup(self, step: int, steps: int) -> float:
        """The share of ``peak`` at a ``step`` after the warm-up."""


class Constant(ScheduleSpec):
    """``peak`` throughout."""

    def after_warmup(self, step: int, steps: int) -> float:
        return 1.0


class InverseSqrt(ScheduleSpec):
    """peak · √(warmup / step) (Vaswani et al. 2017, eq. 3)."""

    def after_warmup(self, step: int, steps: int) -> float:
        return math.sqrt(max(self.warmup, 1) / step)

    @classmethod
    def of_width(cls, width: int, warmup: int, factor: float = 1.0) -> "InverseSqrt":
        """As in the paper: factor · width^-½ · min(step^-½, step · warmup^-1½)."""
        return cls(peak=factor * width**-0.5 * warmup**-0.5, warmup=warmup)


class Exponential(ScheduleSpec):
    """After the warm-up and ``hold`` steps at ``peak``, times ``decay`` every ``every`` steps, smoothly."""

    decay: float = Field(default=0.5, gt=0, le=1)
    """Factor per ``every`` steps."""
    every: int = Field(default=1000, ge=1)
    """Steps for one factor of ``decay``."""
    hold: int = Field(default=0, ge=0)
    """Steps at ``peak`` before the decay begins."""

    def after_warmup(self, step: int, steps: int) -> float:
        return float(self.decay ** (max(0, step - self.warmup - self.hold) / self.every))


class _Annealed(ScheduleSpec):
    """Falls to ``floor`` at the end of the planned steps: the step after the last would be there.

    A run that is given minutes instead of steps plans its steps from its own speed as it goes.
    """

    needs_steps: ClassVar[bool] = True

    floor: float = Field(default=0.0, ge=0, le=1)
    """Where the rate ends, as a share of ``peak``."""

    def after_warmup(self, step: int, steps: int) -> float:
        if not steps:
            return 1.0
        left = max(0.0, (steps + 1 - step) / (steps + 1 - self.rising(steps)))
        return self.floor + (1 - self.floor) * self.shape(left)

    @abstractmethod
    def shape(self, left: float) -> float:
        """From 1 to 0 as the share of steps ``left`` does."""


class Cosine(_Annealed):
    """Half a cosine from ``peak`` to ``floor`` (Loshchilov & Hutter 2017, eq. 5, no restarts)."""

    def shape(self, left: float) -> float:
        return 0.5 * (1 - math.cos(math.pi * left))


class Linear(_Annealed):
    """A straight line from ``peak`` to ``floor``."""

    def shape(self, left: float) -> float:
        return left
