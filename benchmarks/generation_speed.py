"""How fast a text is continued, beside ``generate`` of transformers, in turns.

    python -m benchmarks.generation_speed

One model of 6 layers, 256 wide, 10,000 words, random weights; a prompt of 16 tokens and 96 more, greedily,
for one prompt and for 32 at once. Regard is asked as people ask it (``run.stream``): it reads texts, and
chooses the engine itself.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, contest, say

SHAPE = {
    "layers": 6,
    "width": 256,
    "heads": 8,
    "positions": 128,
    "vocabulary": 10_000,
    "prompt": 16,
    "tokens": 96,
}


def measure(rows: int, rounds: int) -> dict[str, Any]:
    say(f"{rows} prompts at once")
    shape = [f"--{name}={value}" for name, value in {**SHAPE, "rows": rows}.items()]
    entries = [
        Entry("regard", "regard_generation.py", shape),
        Entry("hugging-face", "hugging_face_generation.py", shape, RAISED_THRESHOLDS),
    ]
    with tempfile.TemporaryDirectory() as logs:
        standings, absent = contest(entries, rounds, steps=1, logs=Path(logs), warm_up=1)
    ours = standings[0]
    table = [
        [
            one.name,
            f"{one.rate:,.0f}",
            f"{min(one.rates):,.0f}–{max(one.rates):,.0f}",
            "" if one is ours else f"{ours.against(one):.2f}×",
        ]
        for one in standings
    ]
    print(f"\n{rows} at once\n{results.table(['', 'tokens/s', 'range', 'Regard is'], table)}\n", flush=True)
    return {
        "rows": rows,
        "absent": absent,
        "contestants": [
            {
                "name": one.name,
                "ready": one.ready,
                "tokens_per_second": one.rate,
                "rates": one.rates,
                "regard_is_times_faster": ours.against(one),
            }
            for one in standings
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--rounds", type=int, default=8)
    asked = parser.parse_args()
    found = [measure(rows, asked.rounds) for rows in asked.rows]
    content = {"machine": machine.facts(), "shape": SHAPE, "batches": found}
    say(f"written to {results.write('generation_speed', content).name}")


if __name__ == "__main__":
    main()
