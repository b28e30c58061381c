"""How long torch's threads spin while they wait for each other. Imports nothing: it comes before torch.

A thread that spins is there at once when the next piece of work comes: on a quiet machine with two cores a
training step took 15 % longer with threads that go to sleep. On a busy machine the one that spins takes time
from the one it waits for: three times slower. libgomp reads its setting once, when torch is loaded, so the
choice is made by what the machine is doing then.
"""

import os
import time
from collections.abc import MutableMapping
from pathlib import Path

SPIN, SLEEP = 100_000, 1_000
"""Turns of the waiting loop: about a third of a millisecond, and almost none."""
_LOOKS, _PAUSE = 8, 0.002
"""This process is always running when it looks; others may be by chance, but not eight times."""


def choose_spinning(
    environment: MutableMapping[str, str] = os.environ, load: Path = Path("/proc/loadavg")
) -> None:
    """Set GOMP_SPINCOUNT, unless somebody has decided how threads wait."""
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", str(SLEEP if is_busy(load) else SPIN))


def is_busy(load: Path) -> bool:
    """Something else has been running for a while and is running now, each time one looks."""
    try:
        for _ in range(_LOOKS):
            last_minute, _, _, running, _ = load.read_text(encoding="ascii").split()
            if float(last_minute) < 0.5 or int(running.split("/")[0]) <= 1:
                return False
            time.sleep(_PAUSE)
    except (OSError, ValueError):  # not Linux: whether spinning is safe is not known
        pass
    return True
