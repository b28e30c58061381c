"""Readers of one general text, each for the same time: what benchmarks.few_labels starts from.

    python -m benchmarks.pretrained --text wikitext2 --out runs/pretrained [--minutes 15]
                                    [--task sst2/train_sentences.tsv] [--recipes bert elmo awd_lstm electra]

Leaves a run per recipe in ``--out`` and, with ``--task`` (label, text), that of ULMFiT's second stage, which
reads the texts of the task without their labels for a third of the time. What is there already is not done
again, what was stopped goes on. Prints how well each foretells the test text.
"""

import argparse
from pathlib import Path
from typing import Any

import regard
from benchmarks import results
from benchmarks.arena import say

RECIPES = ("bert", "elmo", "awd_lstm", "electra")
GENERAL, TUNED = "awd_lstm", "ulmfit_lm"


def texts_of(path: Path) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\n").partition("\t")[2] for line in file if line.strip()]


def judged(run: regard.Run, text: str) -> list[str]:
    evaluation = run.evaluate(run.spec.data.records(text))
    scores = ", ".join(f"{name} {value:.4g}" for name, value in evaluation.scores.items())
    return [run.path.name, scores, evaluation.signature]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--text", required=True, help="folder with train, valid and test text")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--task", type=Path, help="file of label and text")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--set", action="append", default=[], help="of every recipe")
    asked = parser.parse_args()
    lines: list[list[str]] = []
    for name in asked.recipes:
        say(f"{name}: {asked.minutes:g} minutes of {asked.text}")
        run = regard.train(
            name, data=asked.text, out=asked.out / name, minutes=asked.minutes, settings=asked.set
        ).run
        lines.append(judged(run, asked.text))
    if asked.task is not None and GENERAL in asked.recipes:
        say(f"{TUNED}: {asked.minutes / 3:g} minutes of {asked.task}")
        given: list[Any] = texts_of(asked.task)
        regard.train(
            TUNED,
            data=given,
            out=asked.out / TUNED,
            minutes=asked.minutes / 3,
            start_from=asked.out / GENERAL,
            settings=["training.validation.every=500"],
        )
    print(results.table(["", "on test text", "signature"], lines))


if __name__ == "__main__":
    main()
