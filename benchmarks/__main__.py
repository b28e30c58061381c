"""All benchmarks, one after the other; each runs by itself too (``python -m benchmarks.training_speed``)."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.arena import say
from benchmarks.recurrent_decoding_speed import PEERS

WORDS = Path(os.environ.get("REGARD_BENCH_WORDS", "../shared/data"))
"""Where WikiText-2 (``wikitext2/train.txt``) and questions about words (``word_eval``) lie, if they do."""
MULTI30K = os.environ.get("REGARD_BENCH_MULTI30K", "../shared/data/multi30k/raw")
"""Where Multi30k lies, if it does; without it the benchmarks make their own text."""


def main() -> None:
    real = [Path(MULTI30K) / f"train.{language}" for language in ("en", "de")]
    given = ["--train", *map(str, real)] if all(path.exists() for path in real) else []
    benchmarks = [
        ("training_speed", given),
        ("text_training_speed", []),
        ("masked_training_speed", []),
        ("generation_speed", []),
        ("encoding_speed", []),
        ("serving_speed", []),
        ("scaling", []),
        ("corpus_size", []),
    ]
    lines = Path(MULTI30K) / "test_2016_flickr.en"
    if given and lines.exists():
        asked = [*given, "--lines", str(lines)]
        benchmarks.append(("decoding_speed", [*asked, "--references", str(lines.with_suffix(".de"))]))
        if any(name in os.environ for name in PEERS.values()):
            benchmarks.append(("recurrent_decoding_speed", asked))
    text = WORDS / "wikitext2" / "train.txt"
    if text.exists():
        questions = [str(path) for path in sorted((WORDS / "word_eval").glob("*.t*"))]
        benchmarks.append(("word_vectors", ["--text", str(text), "--questions", *questions]))
    for name, arguments in benchmarks:
        say(f"{name} {' '.join(arguments)}")
        finished = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], check=False)
        if finished.returncode:
            sys.exit(finished.returncode)


main()
