"""Training speed of language models beside the peers, in turns, at equal sizes and batches.

    python -m benchmarks.text_training_speed [--text FILE]

The recipe ``gpt`` (6 layers, 256 wide, 10,000 byte-level subwords, 16 windows of 128), the same model written
by hand with torch's fused attention, and GPT-2 of that size in Hugging Face's Trainer.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, say, with_precisions
from benchmarks.generated import write_pairs
from benchmarks.training_speed import compare
from regard.recipes.catalogue import recipe

SHAPE = {"layers": 6, "width": 256, "heads": 8, "window": 128, "rows": 16, "dropout": 0.1}


def prepare(folder: Path, text: Path) -> None:
    """The text as it is, and as the ids that peers without a tokenizer are given."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_bytes(text.read_bytes())
    data = recipe("gpt").data.prepare(str(folder / "text.txt"), None, 1, None, None)
    stream = np.concatenate([batch.wanted.numpy().flatten() for batch in data.epoch(0)])
    np.savez(folder / "text.npz", stream=stream, vocabulary=data.lexicon["text"].size)


def entries(folder: Path) -> list[Entry]:
    common = ["--folder", str(folder)]
    shape = [f"--{name}={value}" for name, value in SHAPE.items()]
    return [
        Entry("regard", "regard_training.py", [*common, "--recipe", "gpt"]),
        Entry("hand-written", "hand_written_text_training.py", [*common, *shape], RAISED_THRESHOLDS),
        Entry("hugging-face", "hugging_face_text_training.py", [*common, *shape], RAISED_THRESHOLDS),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, help="default: generated text")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare(folder / "data", asked.text or write_pairs(folder, 60_000)[0])
        taking_part = with_precisions(entries(folder / "data"))
        found = compare(f"gpt: {SHAPE}", taking_part, asked.rounds, asked.steps)
    data = "generated" if asked.text is None else asked.text.name
    content = {"machine": machine.facts(), "data": data, "shape": SHAPE, **found}
    say(f"written to {results.write('text_training_speed', content).name}")


if __name__ == "__main__":
    main()
