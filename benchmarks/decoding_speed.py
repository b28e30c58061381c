"""How fast a trained translator answers, beside CTranslate2 driven directly and ``generate``, in turns.

    python -m benchmarks.decoding_speed --run RUN --lines test.en --references test.de
    python -m benchmarks.decoding_speed --train train.en train.de --lines test.en --minutes 10

Greedily and with a beam of five; all lines at once and line by line. Regard and CTranslate2 take part in
float32 and in whatever is faster, float32 or int8; where the run has a shortlist, Regard also with that; what
it costs is the BLEU beside the speed. CTranslate2 gets the same model and the best of several batch sizes,
found before it begins, and the same instructions; Regard finds its size of batches before it begins, too;
``generate`` of transformers has a model of the same shape that writes as many tokens. Everyone is given text
and gives back text.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, contests, say
from benchmarks.contestants.spread import some_of
from regard.tasks.metrics import metric_named
from regard.training.run_folder import RunFolder

ALONE = 60
"""Lines that are answered one by one …"""
AGAIN = 2
"""… so many times in a turn: many short turns see through a machine whose speed comes and goes."""
CASTS = 3
"""Times that everyone is started: one and the same program differs by some percent from start to start."""
DIRECTLY = ("ctranslate2", "ctranslate2, auto")
"""Who all others are compared with."""


def trained(asked: argparse.Namespace, folder: Path) -> Path:
    if asked.run is not None:
        return Path(asked.run)
    if asked.train is None:
        sys.exit("give a trained run (--run), or files to train one on (--train SOURCE TARGET)")
    return learned(asked.train, asked.minutes, folder)


def learned(pairs: list[str], minutes: float, folder: Path) -> Path:
    say(f"training transformer_tiny for {minutes} minutes")
    out, data = folder / "run", ",".join(pairs)
    command = [sys.executable, "-m", "regard.apps", "train", "transformer_tiny", "--data", data, "--out"]
    subprocess.run([*command, str(out), "--minutes", str(minutes), "--quiet"], check=True)
    return out


def entries_for(run: Path, given: list[str], logs: Path) -> list[Entry]:
    def leaving(name: str) -> list[str]:
        return [*given, "--answers", str(answers_of(name, logs))]

    def regard(name: str, *options: str) -> Entry:
        return Entry(name, "regard_decoding.py", [*leaving(name), *options])

    def driven_directly(name: str, precision: str) -> Entry:
        arguments = [*leaving(name), "--precision", precision]
        return Entry(name, "ctranslate2_decoding.py", arguments, machine.best_instructions())

    own = "regard, own steps"
    entries = [
        regard("regard"),
        regard("regard, auto", "--precision", "auto"),
        Entry(own, "regard_decoding.py", [*leaving(own), "--engine", "torch"], RAISED_THRESHOLDS),
        driven_directly("ctranslate2", "float32"),
        driven_directly("ctranslate2, auto", "auto"),
        Entry("transformers", "hugging_face_decoding.py", given, RAISED_THRESHOLDS),
    ]
    if RunFolder.open(run).has_shortlist():
        entries += [
            regard("regard, shortlist", "--shortlist"),
            regard("regard, shortlist, auto", "--shortlist", "--precision", "auto"),
        ]
    return entries


def answers_of(name: str, logs: Path) -> Path:
    return logs / f"{name}.answers"


def quality(name: str, logs: Path, references: list[str] | None) -> float | None:
    """BLEU of words between blanks; None of who leaves no answers to all lines (a model that only has their
    shape, or one who is asked for some)."""
    place = answers_of(name, logs)
    if references is None or not place.exists():
        return None
    answers = place.read_text(encoding="utf-8").split("\n")[:-1]
    return metric_named("bleu_tok").compute(answers, references).value


def measure(
    beam: int, alone: bool, rounds: int, run: Path, lines: Path, references: list[str] | None, logs: Path
) -> dict[str, Any]:
    name = f"{'line by line' if alone else 'all at once'}, {'greedy' if beam == 1 else f'beam {beam}'}"
    say(name)
    given = ["--run", str(run), "--lines", str(lines), "--beam", str(beam)]
    given += ["--alone", str(ALONE)] if alone else []
    steps = AGAIN if alone else 1
    standings, absent = contests(entries_for(run, given, logs), CASTS, rounds, steps, logs, warm_up=1)
    ours = standings[0]
    named = {one.name: one for one in standings}
    if references is not None and alone:
        references = some_of(references, ALONE)
    bleu = {one.name: quality(one.name, logs, references) for one in standings}
    table = [
        [
            one.name,
            f"{one.rate:,.0f}",
            f"{min(one.rates):,.0f}–{max(one.rates):,.0f}",
            *(f"{one.against(named[name]):.2f}" for name in DIRECTLY),
            "" if bleu[one.name] is None else f"{bleu[one.name]:.2f}",
            str(one.ready.get("engine") or one.ready.get("precision") or ""),
        ]
        for one in standings
    ]
    header = ["", "sentences/s", "range", *(f"of {name}" for name in DIRECTLY), "BLEU", "driven"]
    print(f"\n{name}\n{results.table(header, table)}\n", flush=True)
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
                "bleu": bleu[one.name],
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
    parser.add_argument("--references", type=Path, help="how it was translated: BLEU is told as well")
    parser.add_argument("--rounds", type=int, default=4, help="turns of everyone each time that they start")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, found = trained(asked, Path(folder)), list[dict[str, Any]]()
        references = None if asked.references is None else asked.references.read_text("utf-8").splitlines()
        for alone in (False, True):
            for beam in asked.beam:
                found.append(measure(beam, alone, asked.rounds, run, asked.lines, references, Path(folder)))
                # After each: who stops it has what was measured.
                content = {"machine": machine.facts(), "lines": asked.lines.name, "contests": found}
                say(f"written to {results.write('decoding_speed', content).name}")


if __name__ == "__main__":
    main()
