"""Two minutes from nothing to a model that reads dates in forty languages, and shows where it looked."""

import shlex
import sys
import time
from pathlib import Path

from regard.apps.announcing import Announcements
from regard.apps.inspector import Inspected, question_of, self_contained
from regard.apps.session import Run
from regard.apps.training import train
from regard.data.corpora.dates import Dated, dates
from regard.inspection import glyphs
from regard.inspection.alignment import alignment
from regard.inspection.terminal import draw_alignment
from regard.recipes.demonstration import date_reader
from regard.training.durable import replace_file
from regard.training.progress import progress

SHOWN = 12
TEST = 1000


def show(out: Path, steps: int | None) -> None:
    """Train (or go on with) the demo's run, answer dates it has never seen, and draw where it looked."""
    print("Learning to read dates in 48 locales, written as people write them.\n", file=sys.stderr)
    began = time.perf_counter()
    run = train(date_reader(), "dates", out, steps=steps, watchers=progress(), listener=Announcements()).run
    unseen = dates("test", TEST, seed=0)
    answers = run([one.source for one in unseen])
    seconds = time.perf_counter() - began
    some = different_languages(unseen)
    for at in some[:SHOWN]:
        print(answer_line(unseen[at], answers[at]))
    right = sum(answer == one.target for answer, one in zip(answers, unseen, strict=True))
    print(f"\n{right} of {len(unseen)} unseen dates exactly right; {seconds:.0f} s from start to answers.\n")
    draw_look(run, next((unseen[at] for at in some if shows_well(unseen[at], answers[at])), unseen[0]))
    page = out / "look.html"
    questions = [question_of(unseen[at].source) for at in some[:4]]
    replace_file(page, self_contained([Inspected(out)], questions, "regard · dates").encode())
    print(f"\nLook into it:          {page} (or: .venv/bin/regard look {out})")
    print(f"How training went:     {out / 'report.html'}")
    print(f"Ask it yourself:       echo {shlex.quote(unseen[some[0]].source)} | .venv/bin/regard run {out}")


def different_languages(unseen: list[Dated]) -> list[int]:
    """Places of the first example of each language that is written with the name of a month."""
    first: dict[str, int] = {}
    for at, one in enumerate(unseen):
        if any(character.isalpha() for character in one.source):
            first.setdefault(one.locale.split("_")[0], at)
    return list(first.values())


def answer_line(one: Dated, answer: str) -> str:
    mark = "✓" if answer == one.target else f"✗ ({one.target})"
    space = " " * max(1, 36 - glyphs.width(one.source))
    return f"  {one.locale:<6} {glyphs.closed(one.source)}{space}→ {answer} {mark}"


def draw_look(run: Run, one: Dated) -> None:
    trace = run.trace(one.source)
    matrix = alignment(trace)
    assert matrix is not None, "the demo's model looks at its source"
    print("Where it looked; a row for each character it wrote, a column for each it read:\n")
    print(draw_alignment(matrix, trace.predictions, trace.source, colour=sys.stdout.isatty()))


def shows_well(one: Dated, answer: str) -> bool:
    """A right answer whose day, month and year change places on the way."""
    return answer == one.target and 14 <= len(one.source) <= 24 and one.source[:1].isascii()
