"""Training speed of readers that guess hidden words beside Hugging Face's Trainer, in turns.

    python -m benchmarks.masked_training_speed [--text FILE] [--recipes bert roberta]

The recipes ``bert`` (with the question whether passages follow) and ``roberta`` (without), 4 layers,
256 wide, 10,000 pieces, 16 rows of 128, beside BertForPreTraining and BertForMaskedLM of that size,
whose positions are learned where ours are turned into queries and keys. Tokens are those that are read; 15 %
of them are guessed. Regard takes part twice: as its recipes are, with updates that cost more and teach more
(Muon), and with the peer's optimiser. Peers run with glibc's thresholds raised, their best setting.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, say
from benchmarks.generated import write_pairs
from benchmarks.training_speed import compare
from regard.data.text import TextSpec
from regard.recipes.catalogue import recipe

SHAPE = {"layers": 4, "width": 256, "heads": 4, "window": 128, "rows": 16, "dropout": 0.1}

_ADAMW = ("--set", "training.optimiser={kind: adamw}")


def prepare(folder: Path, text: Path, name: str) -> None:
    """The text as it is, and as the ids that peers without a tokenizer are given."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_bytes(text.read_bytes())
    tokenizer = recipe(name).data.to_dict()["tokenizer"]
    data = TextSpec.from_dict({"tokenizer": tokenizer}).prepare(str(folder / "text.txt"), None, 1, None, None)
    lexicon = data.lexicon["text"]
    np.savez(folder / "text.npz", stream=data.stream, vocabulary=lexicon.size, marks=np.array(lexicon.marks))


def entries(folder: Path, name: str) -> list[Entry]:
    common = ["--folder", str(folder)]
    shape = [f"--{field}={value}" for field, value in SHAPE.items()]
    pairs = ["--pairs"] if name == "bert" else []
    return [
        Entry("regard", "regard_training.py", [*common, "--recipe", name]),
        Entry("regard, adamw", "regard_training.py", [*common, "--recipe", name, *_ADAMW]),
        Entry(
            "hugging-face",
            "hugging_face_masked_training.py",
            [*common, *shape, *pairs],
            RAISED_THRESHOLDS,
        ),
    ]


def measure(folder: Path, text: Path, name: str, rounds: int, steps: int) -> dict[str, Any]:
    prepare(folder / name, text, name)
    return compare(f"{name}: {SHAPE}", entries(folder / name, name), rounds, steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, help="default: generated text")
    parser.add_argument("--recipes", nargs="+", choices=("bert", "roberta"), default=["bert", "roberta"])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        text = asked.text or write_pairs(folder, 60_000)[0]
        found = {name: measure(folder, text, name, asked.rounds, asked.steps) for name in asked.recipes}
    data = "generated" if asked.text is None else asked.text.name
    content = {"machine": machine.facts(), "data": data, "shape": SHAPE, "recipes": found}
    say(f"written to {results.write('masked_training_speed', content).name}")


if __name__ == "__main__":
    main()
