"""How fast recurrent translators answer, beside JoeyNMT and OpenNMT-py, in turns.

    REGARD_BENCH_JOEYNMT=… REGARD_BENCH_OPENNMT=… \\
        python -m benchmarks.recurrent_decoding_speed --runs runs/luong runs/bahdanau --lines test.en
    python -m benchmarks.recurrent_decoding_speed --train train.en train.de --steps 1500 --lines test.en

The variables name a Python that has them (see ``peers.md``). Greedily and with a beam of five; all lines at
once and line by line. Of a run that steps, looks and feeds back (``luong``) peers get the very weights: all
write the same; of another they get a model of nearly its shape with weights of their own, and write as many
tokens. Each peer takes the batch size that is fastest for it, and lines sorted by length. Everyone is given
text and gives back text.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, contest, say

ALONE = 60
"""Lines that are answered one by one in a turn."""
PEERS = {"joeynmt": "REGARD_BENCH_JOEYNMT", "opennmt-py": "REGARD_BENCH_OPENNMT"}
RECIPES = ("luong", "bahdanau")


def trained(asked: argparse.Namespace, folder: Path) -> list[Path]:
    if asked.runs:
        return list(asked.runs)
    if asked.train is None:
        sys.exit("give trained runs (--runs), or files to train some on (--train SOURCE TARGET)")
    runs = []
    for recipe in RECIPES:
        say(f"training {recipe} for {asked.steps} steps")
        runs.append(folder / recipe)
        command = [sys.executable, "-m", "regard.apps", "train", recipe, "--data", ",".join(asked.train)]
        subprocess.run([*command, "--out", str(runs[-1]), "--steps", str(asked.steps), "--quiet"], check=True)
    return runs


def entries(given: list[str]) -> tuple[list[Entry], list[str]]:
    """Who takes part; and who is absent because no Python is named that has it."""
    found, absent = [Entry("regard", "regard_decoding.py", given)], []
    for name, variable in PEERS.items():
        python = os.environ.get(variable)
        if python is None:
            absent.append(f"{name}: {variable} is not set")
            say(f"not taking part: {absent[-1]}")
            continue
        program = f"{name.removesuffix('-py')}_decoding.py"
        found.append(Entry(name, program, given, RAISED_THRESHOLDS, python))
    return found, absent


def measure(run: Path, beam: int, alone: bool, rounds: int, lines: Path, logs: Path) -> dict[str, Any]:
    name = f"{run.name}, {'line by line' if alone else 'all at once'}, "
    name += "greedy" if beam == 1 else f"beam {beam}"
    say(name)
    given = ["--run", str(run), "--lines", str(lines), "--beam", str(beam)]
    taking_part, absent = entries([*given, *(["--alone", str(ALONE)] if alone else [])])
    standings, failed = contest(taking_part, rounds, steps=1, logs=logs, warm_up=1)
    ours = standings[0]
    table = [
        [
            one.name,
            f"{one.rate:,.1f}",
            f"{min(one.rates):,.1f}–{max(one.rates):,.1f}",
            "" if one is ours else f"{ours.against(one):.2f}×",
        ]
        for one in standings
    ]
    print(f"\n{name}\n{results.table(['', 'sentences/s', 'range', 'Regard is'], table)}\n", flush=True)
    return {
        "run": run.name,
        "beam": beam,
        "alone": alone,
        "absent": [*absent, *failed],
        "contestants": [
            {
                "name": one.name,
                "ready": one.ready,
                "sentences_per_second": one.rate,
                "rates": one.rates,
                "regard_is_times_faster": ours.against(one),
            }
            for one in standings
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, nargs="+", help="trained recurrent translators")
    parser.add_argument("--train", nargs=2, help="else: what to train luong and bahdanau on")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--lines", type=Path, required=True, help="what is to be translated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [
            measure(run, beam, alone, asked.rounds, asked.lines, Path(folder))
            for run in trained(asked, Path(folder))
            for alone in (False, True)
            for beam in asked.beam
        ]
    content = {"machine": machine.facts(), "lines": asked.lines.name, "contests": found}
    say(f"written to {results.write('recurrent_decoding_speed', content).name}")


if __name__ == "__main__":
    main()
