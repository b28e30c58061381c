"""A character model of 4 layers, 128 wide: nanoGPT's published settings for a processor, and ``gpt_tiny``.

    python -m benchmarks.text_quality --train tinyshakespeare/train.txt --valid tinyshakespeare/valid.txt

First the settings of nanoGPT in a hand-written loop; only its updates are timed. Then ``regard train
gpt_tiny`` with a share of that time; the whole command is timed, reading and validating included. Loss in
nats per character over the whole validation text, in windows of 64 for both.
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


def hand_written(asked: argparse.Namespace) -> dict[str, Any]:
    program = str(HERE / "contestants" / "hand_written_characters.py")
    environment = {**os.environ, **RAISED_THRESHOLDS}
    command = [sys.executable, program, str(asked.train), str(asked.valid)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def regard(asked: argparse.Namespace, minutes: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        data = ["--data", str(asked.train), "--valid", str(asked.valid), "--out", f"{scratch}/run"]
        command = ["train", "gpt_tiny", *data, "--minutes", f"{minutes:.3f}", "--quiet", "--json"]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "regard.apps", *command], check=True, capture_output=True, text=True
        )
        spent = (time.perf_counter() - began) / 60
        told = json.loads(done.stdout.splitlines()[-1])
        return {"minutes": spent, "loss": told["scores"]["loss"], "updates": told["step"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--valid", type=Path, required=True)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    asked = parser.parse_args()
    theirs = hand_written(asked)
    say(f"nanoGPT's settings: {theirs['loss']:.4f} after {theirs['minutes']:.2f} min")
    ours = []
    for share in asked.shares:
        ours.append(regard(asked, share * theirs["minutes"]))
        say(f"gpt_tiny: {ours[-1]['loss']:.4f} after {ours[-1]['minutes']:.2f} min")
    rows = [["nanoGPT's settings", f"{theirs['minutes']:.2f}", f"{theirs['loss']:.4f}"]]
    rows += [["gpt_tiny", f"{one['minutes']:.2f}", f"{one['loss']:.4f}"] for one in ours]
    print(results.table(["", "minutes", "validation loss"], rows), flush=True)
    content = {"machine": machine.facts(), "nanogpt_settings": theirs, "gpt_tiny": ours}
    say(f"written to {results.write('text_quality', content).name}")


if __name__ == "__main__":
    main()
