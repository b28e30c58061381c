"""All benchmarks, one after the other; each runs by itself too (``python -m benchmarks.training_speed``).

    python -m benchmarks [--rounds 2] [--minutes 10]

``--rounds`` is how often contestants take turns, where the benchmark's own number shall not be; ``--minutes``
how long the translator learns that then answers, line by line, in bulk and over HTTP.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.arena import say
from benchmarks.decoding_speed import learned
from benchmarks.recurrent_decoding_speed import PEERS

WORDS = Path(os.environ.get("REGARD_BENCH_WORDS", "../shared/data"))
"""Where WikiText-2 (``wikitext2/train.txt``) and questions about words (``word_eval``) lie, if they do."""
MULTI30K = Path(os.environ.get("REGARD_BENCH_MULTI30K", "../shared/data/multi30k/raw"))
"""Where Multi30k lies, if it does; without it the benchmarks make their own text."""


def benchmarks(rounds: list[str], minutes: float, scratch: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and arguments, as they are due: what one has made is there for the next."""
    pairs = [str(MULTI30K / f"train.{language}") for language in ("en", "de")]
    lines = MULTI30K / "test_2016_flickr.en"
    real = all(Path(path).exists() for path in (*pairs, lines))
    given = ["--train", *pairs] if real else []
    yield "training_speed", [*given, *rounds]
    yield "text_training_speed", rounds
    yield "masked_training_speed", rounds
    yield "generation_speed", rounds
    yield "encoding_speed", rounds
    yield "scaling", rounds
    yield "corpus_size", []
    if real:
        run = str(learned(pairs, minutes, scratch))
        references = str(lines.with_suffix(".de"))
        yield "decoding_speed", ["--run", run, "--lines", str(lines), "--references", references, *rounds]
        yield "serving_speed", ["--run", run, "--texts", str(lines), "--path", "/translate"]
        if any(name in os.environ for name in PEERS.values()):
            yield "recurrent_decoding_speed", [*given, "--lines", str(lines), *rounds]
    else:
        yield "serving_speed", []
    text = WORDS / "wikitext2" / "train.txt"
    if text.exists():
        questions = [str(path) for path in sorted((WORDS / "word_eval").glob("*.t*"))]
        yield "word_vectors", ["--text", str(text), "--questions", *questions, *rounds]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, help="turns of each contestant; default: each benchmark's own")
    parser.add_argument("--minutes", type=float, default=10, help="that the translator learns")
    asked = parser.parse_args()
    rounds = [] if asked.rounds is None else ["--rounds", str(asked.rounds)]
    with tempfile.TemporaryDirectory() as scratch:
        for name, arguments in benchmarks(rounds, asked.minutes, Path(scratch)):
            say(f"{name} {' '.join(arguments)}")
            finished = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], check=False)
            if finished.returncode:
                sys.exit(finished.returncode)


main()
