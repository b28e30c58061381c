"""What all contestants of decoding are asked."""

import argparse
from pathlib import Path

import protocol
from spread import some_of


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--beam", type=int, required=True)
    parser.add_argument("--alone", type=int, help="so many lines, one by one")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--shortlist", action="store_true")
    parser.add_argument("--answers", type=Path, help="where to leave what was answered")
    found = parser.parse_args()
    found.lines = found.lines.read_text(encoding="utf-8").splitlines()
    if found.alone is not None:
        found.lines = some_of(found.lines, found.alone)
    return found


def answered(texts: list[str]) -> protocol.Step:
    """Sentences are what is counted here."""
    return protocol.Step(len(texts), len(texts))


def leave(texts: list[str], place: Path | None) -> None:
    """Once, outside of what is timed."""
    if place is not None:
        place.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
