"""Contestants take turns on one machine, a few steps at a time, so that its moods hit all of them alike.

A contestant is a program that speaks lines of JSON: it says ``{"ready": {...}}`` once it can begin; for every
line ``steps N`` on its standard input it takes N training steps and answers with one line, ``{"seconds": s,
"tokens": target tokens without padding, "room": the same with padding, "peak_mb": memory}``; it ends with its
standard input. What else it prints goes to its standard error.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from regard.core.precision import factors_of

HERE = Path(__file__).resolve().parent

RAISED_THRESHOLDS = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 31),
    "MALLOC_TOP_PAD_": str(1 << 26),
}
"""What keeps glibc from giving memory back after every step: the peers' best setting."""


@dataclass(frozen=True)
class Entry:
    """Who takes part, and how it is started."""

    name: str
    program: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable


def with_precisions(entries: Sequence[Entry]) -> list[Entry]:
    """Where the processor is made for bfloat16, Regard learns with it by itself: then it also takes part with
    float32, and the peers that can also with bfloat16."""
    if factors_of("auto", torch.device("cpu")) is None:
        return list(entries)
    others = []
    for entry in entries:
        if entry.name == "regard":
            exact = [*entry.arguments, "--set", "training.precision=float32"]
            others.append(replace(entry, name="regard, float32", arguments=exact))
        elif entry.name in _KNOW_BFLOAT16:
            rounded = [*entry.arguments, "--bfloat16"]
            others.append(replace(entry, name=f"{entry.name}, bfloat16", arguments=rounded))
    return [*entries, *others]


_KNOW_BFLOAT16 = ("hand-written", "hugging-face")


class Contestant:
    def __init__(self, entry: Entry, log: Path) -> None:
        self.entry = entry
        environment = {**os.environ, **entry.environment, "PYTHONPATH": str(HERE.parent)}
        command = [entry.python, str(HERE / "contestants" / entry.program), *entry.arguments]
        self._log = log.open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
        )
        self.ready: dict[str, Any] = self._answer()["ready"]

    def take(self, steps: int) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"steps {steps}\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            said = Path(self._log.name).read_text(encoding="utf-8").strip().splitlines()[-5:]
            raise ContestantError(f"{self.entry.name} stopped: " + " | ".join(said))
        answer: dict[str, Any] = json.loads(line)
        return answer


class ContestantError(RuntimeError):
    pass


@dataclass
class Standing:
    """What one contestant did over all rounds."""

    name: str
    ready: dict[str, Any]
    rounds: list[dict[str, float]] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        return [turn["tokens"] / turn["seconds"] for turn in self.rounds]

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def padding(self) -> float:
        return 1 - sum(turn["tokens"] for turn in self.rounds) / sum(turn["room"] for turn in self.rounds)

    @property
    def peak_mb(self) -> float:
        return max(turn["peak_mb"] for turn in self.rounds)

    def against(self, other: "Standing") -> float:
        """How many times faster: the median over rounds, each of which saw one state of the machine."""
        return statistics.median(a / b for a, b in zip(self.rates, other.rates, strict=True))


def contest(
    entries: Sequence[Entry], rounds: int, steps: int, logs: Path, warm_up: int = 3
) -> tuple[list[Standing], list[str]]:
    """All entries, ``rounds`` times ``steps`` steps each, in turns; and why some could not take part."""
    logs.mkdir(parents=True, exist_ok=True)
    taking_part: list[tuple[Contestant, Standing]] = []
    absent = []
    try:
        for entry in entries:
            try:
                contestant = Contestant(entry, logs / f"{entry.name.replace(' ', '_')}.log")
                contestant.take(warm_up)
                taking_part.append((contestant, Standing(entry.name, contestant.ready)))
            except ContestantError as failure:
                absent.append(str(failure))
                say(f"not taking part: {failure}")
        for number in range(rounds):
            # Each round begins with another one: nobody always comes after the same neighbour.
            turn = number % max(1, len(taking_part))
            for contestant, standing in taking_part[turn:] + taking_part[:turn]:
                standing.rounds.append(contestant.take(steps))
            rates = "  ".join(f"{standing.name} {standing.rates[-1]:,.0f}" for _, standing in taking_part)
            say(f"round {number + 1} of {rounds}: {rates}")
    finally:
        for contestant, _ in taking_part:
            contestant.close()
    return [standing for _, standing in taking_part], absent


def contests(
    entries: Sequence[Entry], casts: int, rounds: int, steps: int, logs: Path, warm_up: int = 3
) -> tuple[list[Standing], list[str]]:
    """As ``contest``, with each contestant started ``casts`` times: where its memory happens to lie makes one
    and the same program faster or slower by some per cent for as long as it runs."""
    standings, absent = contest(entries, rounds, steps, logs, warm_up)
    for _ in range(casts - 1):
        again = {one.name: one for one in contest(entries, rounds, steps, logs, warm_up)[0]}
        standings = [one for one in standings if one.name in again]
        for standing in standings:
            standing.rounds += again[standing.name].rounds
    return standings, absent


def say(message: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {message}", file=sys.stderr, flush=True)
