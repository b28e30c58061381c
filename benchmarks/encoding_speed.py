"""How fast sentences become vectors, beside transformers, onnxruntime and CTranslate2, in turns.

    python -m benchmarks.encoding_speed [--rows 32]

A reader of MiniLM's size (6 layers, 384 wide, 12 heads), random weights; 256 sentences of 4 to 64 tokens,
sorted by length, 32 at a time; means over real tokens, normalised, in 32 bits. Regard is asked as people ask
it (``run.embed``): it reads texts, and chooses engine and batches itself. Who is not installed does not take
part (onnxruntime also needs onnx and onnxscript, for the export).
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, contest, say

SHAPE = {
    "layers": 6,
    "width": 384,
    "heads": 12,
    "hidden": 1536,
    "positions": 512,
    "vocabulary": 30_522,
    "texts": 256,
}


def measure(rows: int, rounds: int) -> dict[str, Any]:
    say(f"{rows} sentences at once")
    shape = [f"--{name}={value}" for name, value in {**SHAPE, "rows": rows}.items()]
    entries = [
        Entry("regard", "regard_encoding.py", shape),
        Entry("hugging-face", "hugging_face_encoding.py", shape, RAISED_THRESHOLDS),
        Entry("onnxruntime", "onnxruntime_encoding.py", shape),
        Entry("ctranslate2", "ctranslate2_encoding.py", shape, machine.best_instructions()),
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
    parser.add_argument("--rows", type=int, nargs="+", default=[32])
    parser.add_argument("--rounds", type=int, default=8)
    asked = parser.parse_args()
    found = [measure(rows, asked.rounds) for rows in asked.rows]
    content = {"machine": machine.facts(), "shape": SHAPE, "batches": found}
    say(f"written to {results.write('encoding_speed', content).name}")


if __name__ == "__main__":
    main()
