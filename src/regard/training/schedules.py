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
        "slanted": "regard.training.schedules:SlantedTriangular",
    }
    needs_steps: ClassVar[bool] = False

    peak: float = Field(default=1e-3, gt=0)
    """The highest rate."""
    warmup: int = Field(default=0, ge=0)
    """Steps over which the rate rises from 0 to ``peak``; half of the planned ones at most."""
    warmup_share: float = Field(default=0.0, ge=0, le=0.5)
    """The same as a share of the planned steps; the longer of both counts."""

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
        if steps is None:
            return self.warmup
        warmup = max(self.warmup, round(self.warmup_share * steps))
        return min(warmup, steps // 2) if self.needs_steps else warmup

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


class SlantedTriangular(ScheduleSpec):
    """Up from ``peak`` / ``ratio`` in a short time and down again in a long one (Howard & Ruder 2018 eq. 3).

    The short time is ``cut`` of the planned steps, or ``warmup`` where that is given.
    """

    needs_steps: ClassVar[bool] = True

    cut: float = Field(default=0.1, gt=0, lt=1)
    """Share of the steps over which the rate rises, where ``warmup`` is 0."""
    ratio: float = Field(default=32.0, ge=1)
    """How many times smaller the lowest rate is than the highest."""

    def build(self, steps: int | None) -> Schedule:
        if steps is None:  # while the end is not known, as carefully as at the beginning
            return lambda step: self.peak / self.ratio
        cut = self.rising(steps) or max(1, math.floor(steps * self.cut))

        def rate(step: int) -> float:
            risen = step / cut if step < cut else 1 - (step - cut) / max(1, steps - cut)
            return self.peak * (1 + max(0.0, risen) * (self.ratio - 1)) / self.ratio

        return rate

    def after_warmup(self, step: int, steps: int) -> float:
        return self.build(steps or None)(step) / self.peak
