"""What a line costs by how much CTranslate2 is given at once, in turns.

    OMP_NUM_THREADS=1 python -m benchmarks.batch_sizes --run RUN --lines FILE

Milliseconds of processor time a line, text in and text out, the best of all rounds; tokens of a batch with
those of all hypotheses. Where others compute as well, it says more than the clock.
"""

import argparse
import time
from pathlib import Path

import regard
from benchmarks import results
from benchmarks.arena import say
from regard.apps.session import Run
from regard.engines.budgets import Budgets
from regard.engines.ctranslate2 import Searching
from regard.engines.notes import Notes
from regard.search.search import SearchSpec

SIZES = (1024, 2048, 4096, 8192, 16384)


def measure(run: Run, lines: list[str], search: SearchSpec, rounds: int) -> dict[int, float]:
    engine = run.engine.searching
    assert isinstance(engine, Searching), "CTranslate2 answers"
    best = dict.fromkeys(SIZES, float("inf"))
    for _ in range(rounds):
        for size in SIZES:
            engine.budgets = Budgets((size,), Notes(None), "")
            used = time.process_time()
            for _ in run.stream(lines, search, detail="text"):
                pass
            best[size] = min(best[size], 1000 * (time.process_time() - used) / len(lines))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="a trained translator")
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    lines = asked.lines.read_text(encoding="utf-8").splitlines()
    rows = []
    for precision in ("float32", "int8"):
        run = regard.load(asked.run, precision=precision)
        for name, kind in (("greedy", ["search.kind=greedy"]), ("beam 5", ["search.size=5"])):
            search = run.spec.override(kind).search
            found = measure(run, lines, search, asked.rounds)
            say(f"{name}, {precision}: {found}")
            rows.append([f"{name}, {precision}", *(f"{value:.2f}" for value in found.values())])
    print(results.table(["", *(f"{size:,}" for size in SIZES)], rows))


if __name__ == "__main__":
    main()
