"""What of a training is kept on disk, and how it comes back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.core.errors import RunError
from regard.core.state import tensors_of, with_tensors
from regard.training.averaging import MovingAverage
from regard.training.checkpoint import Checkpoint
from regard.training.optimisation import load_optimiser, optimiser_tensors
from regard.training.run_folder import RunFolder
from regard.training.stepping import Stepper
from regard.training.weights import load_all, named_weights, read_weights


@dataclass
class Standing:
    """All of a training that is not a tensor and must survive a kill."""

    step: int = 0
    epoch: int = 0
    index: int = 0
    """Batches already used in this epoch."""
    seconds: float = 0.0
    planned: int = 0
    """Steps that the time given will be enough for, as far as known; 0: not known yet."""
    tokens: int = 0
    best: float | None = None
    best_step: int = 0
    variant: str = "trained"
    """Which weights are best: "trained", "ema" or "average"."""
    scores: dict[str, float] = field(default_factory=dict)
    """All scores of the best weights."""
    misses: int = 0
    """Validations since the best."""
    validated: int = -1
    """The step that was validated last."""
    window: list[int] = field(default_factory=list)
    """Validated steps whose weights wait to be averaged."""
    concluded: int = -1
    """The step at which training was over and averages had been tried."""
    log_size: int = 0


class Keeper:
    """Saves and restores a training: model, optimiser, moving average and standing."""

    def __init__(
        self,
        folder: RunFolder,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        average: MovingAverage | None,
        stepper: Stepper,
    ) -> None:
        self._folder, self._model, self._optimiser, self._average = folder, model, optimiser, average
        self._stepper = stepper
        self._window_saved_before: list[int] = []

    def save(self, standing: Standing) -> None:
        standing.log_size = self._folder.log_size()
        self._folder.checkpoints.write(
            Checkpoint(
                weights=named_weights(self._model),
                optimiser=optimiser_tensors(self._optimiser, self._model),
                averages={} if self._average is None else self._average.weights,
                carried={f"{place:04d}": t for place, t in enumerate(tensors_of(self._stepper.carried))},
                state=asdict(standing),
            )
        )
        # Training may yet go back to the checkpoint before this one, which needs its own window.
        self._folder.keep_validated([*standing.window, *self._window_saved_before])
        self._window_saved_before = list(standing.window)

    def restore(self) -> tuple[Standing, list[str]]:
        """The last good checkpoint, or the beginning; with it, what a person should know."""
        generations = self._folder.checkpoints
        self._folder.clean()
        if not generations.exist():
            self._begin()
            return Standing(), []
        checkpoint, notice = generations.read()
        standing = Standing(**cast(dict[str, Any], checkpoint.state))
        where = generations.last.parent
        load_all(self._model, checkpoint.weights, where)
        load_optimiser(self._optimiser, self._model, checkpoint.optimiser, where)
        if self._average is not None:
            self._average.load(checkpoint.averages)
        self._carry_on(checkpoint.carried)
        self._folder.cut_log(standing.log_size)
        notices = [] if notice is None else [notice]
        notices += self._drop_damaged(standing) + self._version_notices()
        self._window_saved_before = list(standing.window)
        return standing, notices

    def _carry_on(self, stored: Mapping[str, Tensor]) -> None:
        if not stored:
            return
        form = self._stepper.objective.form_of_carried(self._model)
        tensors = [stored[place].to(self._stepper.device) for place in sorted(stored)]
        self._stepper.carried = with_tensors(form, tensors)

    def _begin(self) -> None:
        if self._folder.has_weights():
            raise RunError(
                f"{self._folder.path}: holds weights but no checkpoint to go on from; "
                "start a new run in another folder from these weights"
            )
        self._folder.cut_log(0)

    def _drop_damaged(self, standing: Standing) -> list[str]:
        notices = []
        for step in list(standing.window):
            try:
                read_weights(self._folder.validated_weights(step))
            except RunError as error:
                standing.window.remove(step)
                notices.append(f"{error}; these weights will not be averaged")
        return notices

    def _version_notices(self) -> list[str]:
        began, now = self._folder.record.versions["torch"], str(torch.__version__)
        if began.split("+")[0] == now.split("+")[0]:
            return []
        return [f"this run began with torch {began}, now it is {now}: results may differ in the last digits"]
