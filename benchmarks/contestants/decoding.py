"""What all contestants of decoding are asked."""

import argparse
from pathlib import Path

import protocol


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--beam", type=int, required=True)
    parser.add_argument("--alone", type=int, help="so many lines, one by one")
    parser.add_argument("--engine", default="auto")
    found = parser.parse_args()
    found.lines = found.lines.read_text(encoding="utf-8").splitlines()
    if found.alone is not None:
        step = max(1, len(found.lines) // found.alone)
        found.lines = found.lines[::step][: found.alone]
    return found


def answered(texts: list[str]) -> protocol.Step:
    """Sentences are what is counted here."""
    return protocol.Step(len(texts), len(texts))
