"""Word vectors beside gensim: the same text, width, window, noise, subsampling and epochs, on the same cores.

    python -m benchmarks.word_vectors --text wikitext2/train.txt --questions word_eval/wordsim353.tsv …

In turns, each time from nothing: what is timed is the learning alone, reading and counting words left out;
for ``regard`` that is the whole loop, with its checkpoints and the validation at the end. Words per second
are those of the text, frequent ones that were left out included. Every vector is judged by ``regard eval``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import HERE, say
from regard.recipes.catalogue import recipe

RECIPES = {"skip_gram": "word2vec", "cbow": "cbow"}
NAMES = [(program, mode) for mode in RECIPES for program in ("regard", "gensim")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True, help="words between blanks, a document a line")
    parser.add_argument("--questions", type=Path, nargs="*", default=[])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    found: dict[tuple[str, str], list[dict[str, float]]] = {name: [] for name in NAMES}
    for number in range(asked.rounds):
        for program, mode in NAMES[number % len(NAMES) :] + NAMES[: number % len(NAMES)]:
            with tempfile.TemporaryDirectory() as scratch:
                learn = with_regard if program == "regard" else with_gensim
                told = learn(asked, mode, number + 1, Path(scratch))
            found[program, mode].append(told)
            say(f"round {number + 1} of {asked.rounds}: {program} {mode} {told}")
    header = ["", "words/s", *(path.stem for path in asked.questions)]
    rows = [[f"{program} {mode}", *map(shown, medians(found[program, mode]))] for program, mode in NAMES]
    print(results.table(header, rows), flush=True)
    for mode in RECIPES:
        ratios = [
            ours["words/s"] / theirs["words/s"]
            for ours, theirs in zip(found["regard", mode], found["gensim", mode], strict=True)
        ]
        say(f"{mode}: {statistics.median(ratios):.2f} times gensim's words/s")
    content: dict[str, Any] = {"machine": machine.facts(), "epochs": asked.epochs, "threads": asked.threads}
    content |= {f"{program} {mode}": found[program, mode] for program, mode in NAMES}
    say(f"written to {results.write('word_vectors', content).name}")


def with_regard(asked: argparse.Namespace, mode: str, seed: int, scratch: Path) -> dict[str, float]:
    with asked.text.open(encoding="utf-8") as file:
        words = sum(len(line.split()) + 1 for line in file)
    data = recipe(RECIPES[mode]).to_dict()["data"]
    steps = round(asked.epochs * words / (data["rows"] * data["window"]))
    settings = ["data.tokenizer.unit=blank", "data.held_out=0.001", f"training.shards={asked.threads}"]
    command = ["train", RECIPES[mode], "--data", str(asked.text), "--out", str(scratch / "run")]
    command += ["--steps", str(steps), "--seed", str(seed), "--quiet", "--json"]
    command += [part for setting in settings for part in ("--set", setting)]
    told = called(["-m", "regard.apps", *command], asked.threads)
    return {"words/s": asked.epochs * words / told["seconds"], **judged(asked, scratch / "run")}


def with_gensim(asked: argparse.Namespace, mode: str, seed: int, scratch: Path) -> dict[str, float]:
    program = str(HERE / "contestants" / "gensim_words.py")
    arguments = ["--mode", mode, "--epochs", str(asked.epochs), "--seed", str(seed)]
    arguments += ["--threads", str(asked.threads)]
    told = called([program, str(asked.text), str(scratch / "vectors.txt"), *arguments], asked.threads)
    called(
        ["-m", "regard.apps", "import", str(scratch / "vectors.txt"), str(scratch / "run"), "--json"],
        asked.threads,
    )
    return {"words/s": told["words"] / told["seconds"], **judged(asked, scratch / "run")}


def judged(asked: argparse.Namespace, run: Path) -> dict[str, float]:
    return {
        path.stem: called(
            ["-m", "regard.apps", "eval", str(run), "--data", str(path), "--json"], asked.threads
        )["value"]
        for path in asked.questions
    }


def called(arguments: list[str], threads: int) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def medians(rounds: list[dict[str, float]]) -> list[float]:
    return [statistics.median(turn[name] for turn in rounds) for name in rounds[0]]


def shown(value: float) -> str:
    return f"{value:,.0f}" if value > 100 else f"{value:.3f}"


if __name__ == "__main__":
    main()
