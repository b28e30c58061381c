"""Runs that teach another one what they find likely."""

import json
from collections.abc import Sequence

import torch

from regard.apps.session import Run, load, together
from regard.core.errors import UsageError
from regard.core.spec import diff as differences
from regard.data.lexicon import Lexicon
from regard.objectives.teaching import Teaching
from regard.recipes.system import SystemSpec

_LEARNER_TOO = ("kind", "backwards")
"""Fields of a task in which a teacher and what learns must not differ."""


def asked_teachers(given: Sequence[str]) -> list[str]:
    """``--taught-by RUN``, once for each."""
    return [f"teaching.runs={json.dumps(list(given))}"] if given else []


def teaching_of(spec: SystemSpec, lexicon: Lexicon, device: torch.device) -> Teaching | None:
    """The runs that the spec names, as one teacher of what has this vocabulary."""
    if not spec.teaching.runs:
        return None
    if "training.steps" not in spec.paths():
        raise UsageError(f"--taught-by: training of kind {spec.training.kind()!r} only counts what is given")
    first, *others = runs = [load(path, str(device)) for path in spec.teaching.runs]
    for run in runs:
        refuse(run, "what learns", spec, _LEARNER_TOO)
        if (field := lexicon.differs_from(run.lexicon)) is not None:
            raise UsageError(
                f"{run.path} cannot teach: its vocabulary for {field!r} is not that of what learns. Whoever "
                "teaches, and what --from or --vocabulary names, must have the same"
            )
    for other in others:
        refuse(other, str(first.path), first.spec, ("opening",))
    model = together(runs).model if others else first.model
    opening = first.spec.task.paths().get("opening")
    return Teaching(
        model.requires_grad_(False), spec.teaching.share, None if opening is None else int(str(opening))
    )


def refuse(run: Run, beside: str, spec: SystemSpec, fields: tuple[str, ...]) -> None:
    """Teachers that read something else."""
    for name, own, other in differences(run.spec.task, spec.task):
        if name in fields:
            raise UsageError(f"{run.path} cannot teach: task.{name} is {own!r} there, {other!r} in {beside}")
