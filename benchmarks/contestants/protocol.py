"""The contestant's side of the arena: imports nothing but the standard library, so that any program can."""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Step(NamedTuple):
    tokens: int
    """Target tokens that were predicted, padding not counted."""
    room: int
    """The same with padding."""


# Libraries print; the arena reads standard output. So that is kept, and what others print goes to stderr.
_answers = sys.stdout
sys.stdout = sys.stderr


def ready(**facts: Any) -> None:
    _say({"ready": facts})


def requests() -> Iterator[int]:
    """How many steps are asked for, until the arena closes."""
    for line in sys.stdin:
        yield int(line.split()[1])


def serve(step: Callable[[], Step]) -> None:
    for steps in requests():
        began = time.perf_counter()
        taken = [step() for _ in range(steps)]
        done(began, taken)


def done(began: float, taken: list[Step]) -> None:
    _say(
        {
            "seconds": time.perf_counter() - began,
            "tokens": sum(step.tokens for step in taken),
            "room": sum(step.room for step in taken),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )


def _say(answer: dict[str, Any]) -> None:
    _answers.write(json.dumps(answer) + "\n")
    _answers.flush()
