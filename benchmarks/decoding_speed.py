"""How fast a trained translator answers, beside CTranslate2 driven directly and ``generate``, in turns.

    python -m benchmarks.decoding_speed --run RUN --lines test.en
    python -m benchmarks.decoding_speed --train train.en train.de --lines test.en --minutes 10

Greedily and with a beam of five; all lines at once and line by line. CTranslate2 gets the same model and the
best of several batch sizes, found before it begins; ``generate`` of transformers a model of the same shape
that writes as many tokens. Everyone is given text and gives back text.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, contest, say

ALONE = 60
"""Lines that are answered one by one in a turn."""


def trained(asked: argparse.Namespace, folder: Path) -> Path:
    if asked.run is not None:
        return Path(asked.run)
    if asked.train is None:
        sys.exit("give a trained run (--run), or files to train one on (--train SOURCE TARGET)")
    say(f"training transformer_tiny for {asked.minutes} minutes")
    out, data = folder / "run", ",".join(asked.train)
    command = [sys.executable, "-m", "regard.apps", "train", "transformer_tiny", "--data", data, "--out"]
    subprocess.run([*command, str(out), "--minutes", str(asked.minutes), "--quiet"], check=True)
    return out


def measure(beam: int, alone: bool, rounds: int, run: Path, lines: Path, logs: Path) -> dict[str, Any]:
    name = f"{'line by line' if alone else 'all at once'}, {'greedy' if beam == 1 else f'beam {beam}'}"
    say(name)
    given = ["--run", str(run), "--lines", str(lines), "--beam", str(beam)]
    given += ["--alone", str(ALONE)] if alone else []
    entries = [
        Entry("regard", "regard_decoding.py", given),
        Entry("regard, own steps", "regard_decoding.py", [*given, "--engine", "torch"], RAISED_THRESHOLDS),
        Entry("ctranslate2", "ctranslate2_decoding.py", given),
        Entry("transformers", "hugging_face_decoding.py", given, RAISED_THRESHOLDS),
    ]
    standings, absent = contest(entries, rounds, steps=1, logs=logs, warm_up=1)
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
    print(f"\n{name}\n{results.table(['', 'sentences/s', 'range', 'Regard is'], table)}\n", flush=True)
    return {
        "beam": beam,
        "alone": alone,
        "absent": absent,
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
    parser.add_argument("--run", help="a trained translator")
    parser.add_argument("--train", nargs=2, help="else: what to train one on")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--lines", type=Path, required=True, help="what is to be translated")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, found = trained(asked, Path(folder)), list[dict[str, Any]]()
        for alone in (False, True):
            for beam in asked.beam:
                found.append(measure(beam, alone, asked.rounds, run, asked.lines, Path(folder)))
    content = {"machine": machine.facts(), "lines": asked.lines.name, "contests": found}
    say(f"written to {results.write('decoding_speed', content).name}")


if __name__ == "__main__":
    main()
