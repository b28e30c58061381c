"""Minutes to a good translator: Regard from raw text to a BLEU, beside fairseq on the same machine.

    REGARD_BENCH_FAIRSEQ=… python -m benchmarks.time_to_quality --train T.en T.de \\
        --valid V.en V.de --test E.en E.de

Regard is given 6, 8, 10 … minutes, each time anew, until the weights it chose by validation reach the wanted
BLEU on validation data with a beam of 5; its time is that of the whole command, reading, learning subwords
and validating included. fairseq goes on training and translates the validation data every few hundred
updates; only its updates are counted. BLEU is over the blanks of the text as given (tokenised, lower-cased
Multi30k for the literature's figure). The test set is translated once by each, with the weights that got
there.
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
from benchmarks.arena import HERE, RAISED_THRESHOLDS, say
from benchmarks.corpus import SUBWORDS, Corpus, Side, prepare
from regard.data.tokenizers import Tokenizer
from regard.recipes.catalogue import recipe
from regard.tasks.metrics import metric_named

TRAINING = ["--layers=4", "--width=128", "--hidden=256", "--heads=4", "--dropout=0.3", "--batch-tokens=4096"]
SCHEDULE = ["--peak=0.005", "--warmup=2000", "--every=300"]
"""As the published Transformer-Tiny was trained (Wu et al. 2021)."""


def regard(asked: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """One run for every budget, until one is good enough."""
    tried: list[dict[str, Any]] = []
    for minutes in asked.minutes:
        out, began = folder / f"regard-{minutes}", time.perf_counter()
        settings = ["--set", "evaluation.metric=bleu_tok", "--quiet"]
        data = ["--data", ",".join(map(str, asked.train)), "--valid", ",".join(map(str, asked.valid))]
        command = [
            "train",
            "transformer_tiny",
            *data,
            "--out",
            str(out),
            "--minutes",
            str(minutes),
            *settings,
        ]
        subprocess.run([sys.executable, "-m", "regard.apps", *command], check=True, stdout=sys.stderr)
        spent = (time.perf_counter() - began) / 60
        tried.append({"given": minutes, "minutes": spent, "valid": evaluate(out, asked.valid)})
        say(f"regard {spent:.1f} min: {tried[-1]['valid']:.2f}")
        if tried[-1]["valid"] >= asked.wanted:
            tried[-1]["test"] = evaluate(out, asked.test)
            break
    return tried


def evaluate(run: Path, pair: tuple[Path, Path]) -> float:
    command = ["eval", str(run), "--data", ",".join(map(str, pair)), "--metric", "bleu_tok", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "regard.apps", *command], check=True, capture_output=True, text=True
    )
    return float(json.loads(done.stdout)["value"])


def fairseq(asked: argparse.Namespace, folder: Path, python: str) -> list[dict[str, Any]]:
    """One run, looked at every few hundred updates until it is good enough or out of time."""
    prepare(folder, asked.train)
    spec = recipe("transformer_tiny").override(SUBWORDS).data
    tokenizer = spec.prepare(str(folder / "train.{src,tgt}"), None, 1, None, None).lexicon["target"]
    for name in ("valid", "test"):
        sides = [Side.of(tokenizer.encode_many(lines_of(path))) for path in getattr(asked, name)]
        Corpus(sides[0], sides[1], tokenizer.size).save(folder / f"{name}.npz")
    out = folder / "fairseq.jsonl"
    out.touch()
    sets = [f"--valid={folder / 'valid.npz'}", f"--test={folder / 'test.npz'}", f"--out={out}"]
    program = str(HERE / "contestants" / "fairseq_training.py")
    command = [python, program, f"--folder={folder}", *TRAINING, *SCHEDULE, *sets, f"--minutes={asked.most}"]
    environment = {**os.environ, **RAISED_THRESHOLDS, "PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen(command, env=environment, stdout=sys.stderr)
    seen: list[dict[str, Any]] = []
    try:
        while process.poll() is None and not (seen and seen[-1]["valid"] >= asked.wanted):
            time.sleep(2)
            for line in out.read_text(encoding="utf-8").splitlines()[len(seen) :]:
                seen.append(judged(json.loads(line), asked, tokenizer))
                say(f"fairseq {seen[-1]['minutes']:.1f} min: {seen[-1]['valid']:.2f}")
    finally:
        process.terminate()
        process.wait()
    if seen and seen[-1]["valid"] < asked.wanted:
        seen[-1].pop("test")
    return seen


def judged(found: dict[str, Any], asked: argparse.Namespace, tokenizer: Tokenizer) -> dict[str, Any]:
    scores = {"minutes": found["minutes"], "updates": found["updates"]}
    for name in ("valid", "test"):
        answers = [tokenizer.decode(ids) for ids in found[f"{name}_ids"]]
        references = lines_of(getattr(asked, name)[1])
        scores[name] = metric_named("bleu_tok").compute(answers, references).value
    return scores


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("train", "valid", "test"):
        parser.add_argument(f"--{name}", nargs=2, type=Path, required=True)
    parser.add_argument("--wanted", type=float, default=38.0)
    parser.add_argument("--minutes", type=float, nargs="+", default=[6, 8, 10, 12, 15, 20, 30])
    parser.add_argument("--most", type=float, default=90, help="minutes after which fairseq is given up")
    asked = parser.parse_args()
    peer = os.environ.get("REGARD_BENCH_FAIRSEQ")
    with tempfile.TemporaryDirectory() as scratch:
        ours = regard(asked, Path(scratch))
        theirs = fairseq(asked, Path(scratch) / "fairseq", peer) if peer else []
    rows = [
        [
            name,
            f"{one['minutes']:.1f}",
            f"{one['valid']:.2f}",
            f"{one['test']:.2f}" if "test" in one else "",
        ]
        for name, all_of in (("regard", ours), ("fairseq", theirs))
        for one in all_of
    ]
    print(results.table(["", "minutes", "validation", "test"], rows), flush=True)
    content = {"machine": machine.facts(), "wanted": asked.wanted, "regard": ours, "fairseq": theirs}
    say(f"written to {results.write('time_to_quality', content).name}")


if __name__ == "__main__":
    main()
