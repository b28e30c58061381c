"""How the time of a training step grows with length, width and vocabulary.

    python -m benchmarks.scaling

Every setting is measured beside the one in the middle, in turns, so that only the setting differs. Text is
made up: random words, since no quality is measured.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np
import torch

from benchmarks import machine, results
from benchmarks.arena import say
from regard.core.sequences import Tokens
from regard.data.pair_batches import PairBatch
from regard.objectives.next_token import NextTokenSpec
from regard.recipes.recurrent import bahdanau
from regard.recipes.system import SystemSpec
from regard.recipes.transformer import quick_transformer, transformer_tiny
from regard.training.memory import keep_freed_memory
from regard.training.optimisation import groups_of
from regard.training.schedules import Constant
from regard.training.stepping import Placed, Stepper

TOKENS, LENGTH, WIDTH, VOCABULARY = 4096, 16, 128, 10_000
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
WIDTHS = (64, 128, 256, 512)
VOCABULARIES = (1_000, 5_000, 10_000, 20_000, 40_000)


def batch(length: int, vocabulary: int, tokens: int = TOKENS) -> PairBatch:
    random = np.random.default_rng(0)
    rows = max(1, tokens // length)
    source, target = (
        Tokens.whole(torch.from_numpy(random.integers(4, vocabulary, size=(rows, length + extra))))
        for extra in (0, 1)
    )
    return PairBatch(source, target, np.arange(rows))


class Setting:
    """A system, its step and its batch."""

    def __init__(self, system: SystemSpec, length: int = LENGTH, vocabulary: int = VOCABULARY) -> None:
        model = system.model.build({"source": vocabulary, "target": vocabulary}).train()
        optimiser = system.training.optimiser.build(groups_of(model))
        schedule = Constant(peak=1e-5).build(None)
        objective = NextTokenSpec(smoothing=0.1).build()
        device = torch.device("cpu")
        shards = system.training.shards
        self._stepper = Stepper(model, objective, optimiser, schedule, 1.0, 1, device, shards, "auto")
        self._batch, self._step = batch(length, vocabulary), 0

    def microseconds_per_token(self) -> float:
        self._step += 1
        began = time.perf_counter()
        taken = self._stepper.take(self._step, [Placed(0, 0, self._batch)], "")
        return (time.perf_counter() - began) / taken.tokens * 1e6


def tiny(width: int) -> SystemSpec:
    model = quick_transformer(4, width, 2 * width, heads=4, dropout=0.3)
    return transformer_tiny().model_copy(update={"model": model})


def measure(settings: dict[int, Setting], middle: int, rounds: int) -> dict[int, dict[str, float]]:
    found: dict[int, list[float]] = {key: [] for key in settings}
    for setting in settings.values():
        setting.microseconds_per_token()
    for _ in range(rounds):
        for key, setting in settings.items():
            found[key].append(setting.microseconds_per_token())
    return {
        key: {
            "microseconds_per_token": statistics.median(times),
            "against_middle": statistics.median(a / b for a, b in zip(times, found[middle], strict=True)),
        }
        for key, times in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    keep_freed_memory()
    content: dict[str, Any] = {"machine": machine.facts(), "gemm_gflops": machine.gemm_gflops()}
    for name, settings, middle in (
        ("length", {n: Setting(transformer_tiny(), length=n) for n in LENGTHS}, LENGTH),
        ("length_recurrent", {n: Setting(bahdanau(), length=n) for n in LENGTHS[:5]}, LENGTH),
        ("width", {n: Setting(tiny(n)) for n in WIDTHS}, WIDTH),
        ("vocabulary", {n: Setting(transformer_tiny(), vocabulary=n) for n in VOCABULARIES}, VOCABULARY),
    ):
        content[name] = measure(settings, middle, rounds)
        rows = [
            [f"{key:,}", f"{row['microseconds_per_token']:.0f}", f"{row['against_middle']:.2f}×"]
            for key, row in content[name].items()
        ]
        print(f"\n{results.table([name, 'µs per token', f'against {middle:,}'], rows)}\n", flush=True)
    say(f"written to {results.write('scaling', content).name}")


if __name__ == "__main__":
    main()
