"""The only training loop. It knows no model, no data and no task: those are handed in.

Every step is a pure function of the seed, the step and the state before it, and position in the data is two
integers. So a run that was killed goes on from its last checkpoint and ends with the very same weights.
"""

import contextlib
import math
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import NoReturn

import torch
from torch import Tensor, nn

from regard.core.errors import TrainingError, UsageError, nearest
from regard.objectives.objective import Objective
from regard.tasks.metrics import higher_is_better
from regard.training import events
from regard.training.averaging import MovingAverage, average_last
from regard.training.keeping import Keeper, Standing
from regard.training.memory import keep_freed_memory
from regard.training.optimisation import groups_of
from regard.training.plan import TrainingSpec
from regard.training.result import TrainingResult, Validate
from regard.training.run_folder import RunFolder
from regard.training.signals import Interrupted, StopNow, StopSignal
from regard.training.stepping import Data, Placed, Prefetch, Stepper, batches_from, one_by_one, set_random
from regard.training.thawing import Thawing
from regard.training.weights import load_all, named_weights

_KNOWS_ITS_SPEED = 20
"""Steps after which a run can say how long its steps take."""
_PLAN_AGAIN = 0.02
"""Share of the time given after which the number of steps is foreseen anew."""
_VALIDATION = -1
"""Stands for a turn of a step that no batch has, where validation draws random numbers."""


def train(
    model: nn.Module,
    objective: Objective,
    data: Data,
    validate: Validate,
    spec: TrainingSpec,
    folder: RunFolder,
    seed: int,
    watchers: Sequence[events.Watcher] = (),
    device: torch.device | str = "cpu",
    stop: StopSignal | None = None,
    prefetch: Prefetch = one_by_one,
) -> TrainingResult:
    """Train, or go on training, what ``folder`` holds; leaves the best weights there and in ``model``.

    Raises Interrupted after a polite stop, TrainingError when a step cannot be taken or saved.
    """
    keep_freed_memory()
    stop = StopSignal() if stop is None else stop
    together = events.Together([events.LogWatcher(folder.log_path), *watchers])
    with folder.locked(), stop, torch.random.fork_rng(devices=[]), contextlib.closing(together):
        training = _Training(
            model.to(device), objective, validate, spec, folder, seed, together, torch.device(device), stop
        )
        return training.run(data, prefetch)


class _Training:
    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        validate: Validate,
        spec: TrainingSpec,
        folder: RunFolder,
        seed: int,
        watchers: events.Together,
        device: torch.device,
        stop: StopSignal,
    ) -> None:
        self.model, self.validate, self.spec = model, validate, spec
        self.folder, self.seed, self.watchers = folder, seed, watchers
        self.device, self.stop = device, stop
        self.thawing = Thawing(spec.thawing, model)
        optimiser = spec.optimiser.build(groups_of(model, self.thawing.rates()))
        schedule = spec.schedule.build(spec.steps)
        self.stepper = Stepper(
            model, objective, optimiser, schedule, spec.clip, seed, device, spec.shards, spec.precision
        )
        decay = spec.averaging.ema
        self.average = None if decay is None else MovingAverage(decay, named_weights(model))
        self.keeper = Keeper(folder, model, optimiser, self.average, self.stepper)
        self.higher_is_better = higher_is_better(spec.validation.watch)
        self.state = Standing()
        self.saved_at = 0.0
        self.clock_zero = 0.0
        self.planned_at = 0.0

    def run(self, data: Data, prefetch: Prefetch) -> TrainingResult:
        self.state, notices = self.keeper.restore()
        if self.state.planned:
            self.stepper.schedule = self.spec.schedule.build(self.state.planned)
        self.clock_zero = time.monotonic() - self.state.seconds
        reason = self._reason_to_end()
        if reason is not None and self.state.concluded == self.state.step:
            return self._result(reason)
        self._tell_start(notices)
        # Also a new run is saved before its first step: better to find a full disk now than in an hour.
        self._save()
        self.model.train()
        with contextlib.closing(batches_from(data, self.state.epoch, self.state.index, prefetch)) as batches:
            try:
                return self._go_on(batches)
            except StopNow:
                self._interrupt()

    def _go_on(self, batches: Generator[Placed, None, None]) -> TrainingResult:
        while True:
            if self.stop.requested is not None:
                self._interrupt()
            reason = self._reason_to_end()
            if self._validation_is_due(reason):
                self._validate()
                reason = reason or self._reason_to_end()
            if reason is not None:
                return self._conclude(reason)
            self._plan()
            self._step(batches)
            if self._saving_is_due():
                self._save()

    def _plan(self) -> None:
        """Where only the clock knows when training ends: foresee the last step from the speed so far."""
        spec, state, now = self.spec, self.state, self._seconds()
        if not spec.planned_by_clock or spec.minutes is None or state.step < _KNOWS_ITS_SPEED:
            return
        if state.planned and now - self.planned_at < _PLAN_AGAIN * 60 * spec.minutes:
            return
        left = max(0.0, 60 * spec.minutes - now)
        state.planned = max(round(state.step * (1 + left / now)), state.step + 1)
        self.planned_at = now
        self.stepper.schedule = spec.schedule.build(state.planned)

    def _step(self, batches: Generator[Placed, None, None]) -> None:
        state, began = self.state, time.monotonic()
        placed = list(islice(batches, self.spec.accumulate))
        self._tell(batch.notice for batch in placed if batch.notice is not None)
        self.thawing.at(placed[0].epoch)
        taken = self.stepper.take(state.step + 1, placed, self._last_good())
        state.step += 1
        state.epoch, state.index = placed[-1].epoch, placed[-1].index + 1
        state.tokens += taken.tokens
        if self.average is not None:
            self.average.update(named_weights(self.model), state.step)
        now = time.monotonic()
        self.watchers.on_step(
            events.Stepped(
                step=state.step,
                epoch=state.epoch,
                loss=taken.loss,
                rate=taken.rate,
                norm=taken.norm,
                tokens=taken.tokens,
                seconds=now - self.clock_zero,
                tokens_per_second=taken.tokens / max(now - began, 1e-9),
                padding=taken.padding,
                parts=taken.parts,
            )
        )

    # When to do what

    def _reason_to_end(self) -> str | None:
        spec, state = self.spec, self.state
        if spec.validation.patience is not None and state.misses >= spec.validation.patience:
            return "patience"
        if spec.steps is not None and state.step >= spec.steps:
            return "steps"
        if spec.minutes is not None and self._seconds() >= 60 * spec.minutes:
            return "minutes"
        return None

    def _validation_is_due(self, reason_to_end: str | None) -> bool:
        step = self.state.step
        regular = step > 0 and step % self.spec.validation.every == 0
        return self.state.validated < step and (regular or reason_to_end is not None)

    def _saving_is_due(self) -> bool:
        every = self.spec.checkpoints
        if every.steps is not None and self.state.step % every.steps == 0:
            return True
        return every.seconds is not None and time.monotonic() - self.saved_at >= every.seconds

    def _seconds(self) -> float:
        """Training time, over all continuations."""
        return time.monotonic() - self.clock_zero

    # What is better

    def _validate(self) -> None:
        state, keep = self.state, self.spec.averaging.last
        better = self._judge("trained")
        state.misses = 0 if better else state.misses + 1
        state.validated = state.step
        if keep > 1:
            self.folder.save_validated(state.step, named_weights(self.model))
            state.window = [*state.window, state.step][-keep:]
        self._save()

    def _judge(self, variant: str) -> bool:
        """Validate the weights in the model; they become the run's if they are the best so far."""
        state = self.state
        scores = self._scores()
        value = scores[self.spec.validation.watch]
        better = state.best is None or (value > state.best if self.higher_is_better else value < state.best)
        if better:
            self.folder.save_weights(named_weights(self.model))
            state.best, state.best_step, state.variant, state.scores = value, state.step, variant, scores
        event = events.Validated(state.step, scores, better, variant, self._seconds())
        self.watchers.on_validation(event)
        return better

    def _scores(self) -> dict[str, float]:
        watch = self.spec.validation.watch
        set_random(self.device, self.seed, self.state.step, _VALIDATION)
        self.model.eval()
        try:
            with torch.no_grad(), self.stop.interruptible():
                scores = self.validate(self.model)
        finally:
            self.model.train()
        if watch not in scores:
            raise UsageError(
                f"validation gives no score {watch!r} to watch, only {', '.join(scores)}"
                f"{nearest(watch, scores)}. Answers are judged where there are validation examples: give "
                "--valid, or more data to hold some out, or watch the loss"
            )
        if not math.isfinite(scores[watch]):
            where = f"step {self.state.step}, epoch {self.state.epoch}"
            raise TrainingError(f"{where}: the validation {watch} is {scores[watch]}. {self._last_good()}")
        return scores

    def _conclude(self, reason: str) -> TrainingResult:
        """Let averaged weights compete, save, and leave the best weights in the model."""
        state = self.state
        trained = {name: tensor.clone() for name, tensor in named_weights(self.model).items()}
        try:
            if self.average is not None:
                self._judge_instead("ema", self.average.weights)
            if len(state.window) > 1:
                paths = [self.folder.validated_weights(step) for step in state.window]
                self._judge_instead("average", average_last(paths))
        except StopNow:  # the last validation was saved: the competition starts again from there
            self._interrupt(saved=True)
        finally:  # what is saved to go on from is what was trained
            load_all(self.model, trained, self.folder.path)
        state.concluded = state.step
        assert state.best is not None, "training ends with a validation"
        ended = events.Ended(state.step, reason, state.best, state.best_step, state.variant, self._seconds())
        self.watchers.on_end(ended)
        self._save()
        return self._result(reason)

    def _judge_instead(self, variant: str, weights: Mapping[str, Tensor]) -> None:
        load_all(self.model, weights, self.folder.path)
        self._judge(variant)

    def _result(self, reason: str) -> TrainingResult:
        state, watch = self.state, self.spec.validation.watch
        assert state.best is not None, "training ends with a validation"
        self.folder.load_into(self.model)
        self.model.eval()
        self.thawing.end()
        return TrainingResult(
            state.step,
            reason,
            watch,
            state.best,
            state.best_step,
            state.variant,
            state.scores,
            state.seconds,
        )

    # What is kept, and said

    def _save(self) -> None:
        self.state.seconds = self._seconds()
        self.keeper.save(self.state)
        self.saved_at = time.monotonic()
        self.watchers.on_checkpoint(events.Checkpointed(self.state.step, self.folder.checkpoints.last))

    def _interrupt(self, saved: bool = False) -> NoReturn:
        assert self.stop.requested is not None, "only a request interrupts"
        if not saved:
            self._save()
        raise Interrupted(self.stop.requested, self.state.step)

    def _last_good(self) -> str:
        return f"The last good checkpoint is {self.folder.checkpoints.last}"

    def _tell_start(self, notices: Sequence[str]) -> None:
        budget = None if self.spec.minutes is None else 60 * self.spec.minutes
        state = self.state
        precision = str(self.stepper.factors or torch.float32).removeprefix("torch.")
        self.watchers.on_start(events.Started(state.step, self.spec.steps, state.seconds, budget, precision))
        self._tell(notices)

    def _tell(self, notices: Iterable[str]) -> None:
        for message in notices:
            self.watchers.on_notice(events.Noticed(self.state.step, message))
