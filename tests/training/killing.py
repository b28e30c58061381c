"""Kills real processes while they train, as a script of its own: torch is imported once, children are forked.

python -m tests.training.killing FOLDER kill SEED TIMES
python -m tests.training.killing FOLDER stop
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.core.errors import RegardError
from regard.training.checkpoint import Generations
from regard.training.events import Stepped, Watcher
from regard.training.weights import read_weights
from tests.training import toy

SPEC = toy.SPEC.override(["steps=25"])
CHANGES_TO_THE_DISK = ("fsync", "rename", "replace", "mkdir", "unlink", "rmdir", "truncate", "write")


def in_child(work: Callable[[], None], meanwhile: Callable[[int], None] = lambda child: None) -> int:
    """Do ``work`` in a process of its own; how it ended, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            work()
        except RegardError as error:
            print(f"child: {error}", file=sys.stderr, flush=True)
            code = error.exit_code
        except BaseException as error:
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            code = 99
        os._exit(code)
    meanwhile(child)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_self_at(moment: int) -> None:
    """Die just before the ``moment``-th change to the disk."""
    left = [moment]

    def counted(original: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **options)

        return call

    for name in CHANGES_TO_THE_DISK:
        setattr(os, name, counted(getattr(os, name)))


def killed_once(path: Path, choice: random.Random) -> int:
    if choice.random() < 0.5:
        moment = choice.randrange(1, 150)

        def work() -> None:
            kill_self_at(moment)
            toy.run(path, SPEC)

        return in_child(work)
    delay = choice.uniform(0.0, 0.3)

    def kill_later(child: int) -> None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)

    return in_child(lambda: void(toy.run(path, SPEC)), kill_later)


def check_nothing_is_torn(path: Path) -> None:
    generations = Generations(path / "checkpoints")
    if generations.exist():
        _, notice = generations.read()
        assert notice is None, notice
    if (path / "model.safetensors").exists():
        read_weights(path / "model.safetensors")


def kill(folder: Path, seed: int, times: int) -> dict[str, Any]:
    """Run after run, each killed again and again until it ends, until ``times`` processes were killed."""
    assert in_child(lambda: void(toy.run(folder / "whole", SPEC))) == 0
    whole = toy.print_of(folder / "whole")
    choice = random.Random(seed)
    killed = runs = 0
    while killed < times:
        runs += 1
        path = folder / f"run-{runs}"
        for _ in range(min(5, times - killed)):
            code = killed_once(path, choice)
            assert code in (0, -signal.SIGKILL), code
            killed += code != 0
            check_nothing_is_torn(path)
        assert in_child(lambda path=path: void(toy.run(path, SPEC))) == 0
        assert toy.print_of(path) == whole, f"seed {seed}: {path} differs"
    return {"killed": killed, "runs": runs}


class Tell(Watcher):
    """Says when a step is done, and waits until the signal was sent."""

    def __init__(self, say: int, hear: int, step: int) -> None:
        self._say, self._hear, self._step = say, hear, step

    def on_step(self, event: Stepped) -> None:
        if event.step == self._step:
            os.write(self._say, b".")
            os.read(self._hear, 1)


def stopped_by(folder: Path, number: signal.Signals) -> dict[str, Any]:
    path = folder / number.name
    parent_hears, child_says = os.pipe()
    child_hears, parent_says = os.pipe()

    def send(child: int) -> None:
        os.read(parent_hears, 1)
        os.kill(child, number)
        os.write(parent_says, b".")

    watcher = Tell(child_says, child_hears, 7)
    code = in_child(lambda: void(toy.run(path, SPEC, watchers=[watcher])), send)
    step = json.loads((path / "checkpoints/last/state.json").read_text())["step"]
    assert in_child(lambda: void(toy.run(path, SPEC))) == 0
    return {"code": code, "step": step, "equal": toy.print_of(path) == toy.print_of(folder / "whole")}


class FillDisk(Watcher):
    """From a step on, no file can grow beyond 2 kB."""

    def on_step(self, event: Stepped) -> None:
        if event.step == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY))


def full_disk(folder: Path) -> dict[str, Any]:
    path = folder / "full"
    code = in_child(lambda: void(toy.run(path, SPEC, watchers=[FillDisk()])))
    check_nothing_is_torn(path)
    left = sorted(file.name for file in (path / "checkpoints").iterdir())
    step = json.loads((path / "checkpoints/last/state.json").read_text())["step"]
    assert in_child(lambda: void(toy.run(path, SPEC))) == 0
    equal = toy.print_of(path) == toy.print_of(folder / "whole")
    return {"code": code, "step": step, "left": left, "equal": equal}


def stop(folder: Path) -> dict[str, Any]:
    toy.run(folder / "whole", SPEC)
    signals = {number.name: stopped_by(folder, number) for number in (signal.SIGTERM, signal.SIGINT)}
    return {**signals, "full": full_disk(folder)}


def void(result: object) -> None:
    """A lambda must not return what it made."""


def main() -> None:
    torch.set_num_threads(1)
    folder, what, *numbers = sys.argv[1:]
    results: dict[str, Callable[[], dict[str, Any]]] = {
        "kill": lambda: kill(Path(folder), *map(int, numbers)),
        "stop": lambda: stop(Path(folder)),
    }
    print(json.dumps(results[what]()))


if __name__ == "__main__":
    main()
