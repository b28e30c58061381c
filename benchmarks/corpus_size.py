"""What a larger corpus costs: time to the first step, memory, speed.

    python -m benchmarks.corpus_size [--pairs 30000 300000 10000000] [--data FOLDER]

``regard train`` runs in a process of its own on generated pairs, with a cache of its own that is empty, for a
bounded number of steps. The first steps are not counted into the speed: they find everything cold.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import say
from benchmarks.generated import write_pairs

RECIPE = "transformer_tiny"
WARM_UP = 10
SETTINGS = ("data.held_out_most=200", "evaluation.examples=0")
"""The same small validation for every size: it is not what is measured."""


def measure(folder: Path, pairs: int, steps: int) -> dict[str, Any]:
    data = folder / f"{pairs}"
    if not data.exists():
        say(f"writing {pairs:,} pairs")
        write_pairs(data, pairs)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        cache, out = Path(scratch) / "cache", Path(scratch) / "run"
        started = time.monotonic()
        process = subprocess.Popen(command(data, out, steps), env={**os.environ, "REGARD_CACHE": str(cache)})
        waited, worked = until_first_step(process, out / "log.jsonl", started)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"training on {pairs:,} pairs failed")
        return {
            "pairs": pairs,
            "corpus_mb": size_of(data) / 1e6,
            "cache_mb": size_of(cache) / 1e6,
            "seconds_to_first_step": waited,
            "processor_seconds_to_first_step": worked,
            "peak_mb": used.ru_maxrss / 1e3,
            "tokens_per_second": speed(out / "log.jsonl"),
        }


def command(data: Path, out: Path, steps: int) -> list[str]:
    chosen = [part for setting in SETTINGS for part in ("--set", setting)]
    files = f"{data / 'generated.src'},{data / 'generated.tgt'}"
    options = ["--data", files, "--out", str(out), "--steps", str(steps), *chosen]
    return [sys.executable, "-m", "regard.apps", "train", RECIPE, *options]


def until_first_step(process: subprocess.Popen[bytes], log: Path, started: float) -> tuple[float, float]:
    """Seconds by the clock and seconds of processor, seen from outside, the interpreter's start counted."""
    # Not poll(): that would take the process's account of its memory with it.
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if log.exists() and b'"event": "step"' in log.read_bytes():
            return time.monotonic() - started, processor_seconds(process.pid)
        time.sleep(0.02)
    return sys.exit("training ended before its first step")


def processor_seconds(process: int) -> float:
    """All threads together. On a busy machine this says more than the clock."""
    after_name = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(int(ticks) for ticks in after_name[11:13]) / os.sysconf("SC_CLK_TCK")


def speed(log: Path) -> float:
    """Target tokens a second between the warm-up and the last step."""
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    steps = [event for event in events if event["event"] == "step"]
    counted = steps[WARM_UP:]
    seconds = counted[-1]["seconds"] - steps[WARM_UP - 1]["seconds"]
    return float(sum(step["tokens"] for step in counted) / seconds)


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def shown(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['pairs']:,}",
        f"{row['corpus_mb']:,.0f} MB",
        f"{row['seconds_to_first_step']:.0f} s",
        f"{row['processor_seconds_to_first_step']:.0f} s",
        f"{row['peak_mb']:,.0f} MB",
        f"{row['tokens_per_second']:,.0f}",
        f"{row['cache_mb']:.1f} MB",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", type=int, default=[30_000, 300_000])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--data", type=Path, help="where generated pairs are kept; default: nowhere")
    asked = parser.parse_args()
    if asked.steps <= WARM_UP:
        parser.error(f"--steps must be more than the {WARM_UP} of the warm-up")
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.data or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        found = [measure(folder, pairs, asked.steps) for pairs in asked.pairs]
    header = [
        "pairs",
        "corpus",
        "first step after",
        "of processor",
        "peak memory",
        "tokens/s",
        "kept in the cache",
    ]
    print(f"\n{results.table(header, [shown(row) for row in found])}\n", flush=True)
    content = {"machine": machine.facts(), "recipe": RECIPE, "steps": asked.steps, "sizes": found}
    say(f"written to {results.write('corpus_size', content).name}")


if __name__ == "__main__":
    main()
