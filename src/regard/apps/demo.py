"""Two minutes from nothing to a model that reads dates in forty languages, and shows where it looked."""

import shlex
import sys
import time
from pathlib import Path

from regard.apps.announcing import Announcements
from regard.apps.session import Run
from regard.apps.training import train
from regard.data.corpora.dates import Dated, dates
from regard.inspection.alignment import alignment
from regard.inspection.page import look_page
from regard.inspection.terminal import draw_alignment
from regard.recipes.demonstration import date_reader
from regard.training.durable import replace_file
from regard.training.progress import progress

SHOWN = 12
TEST = 1000


def show(out: Path, steps: int | None) -> None:
    began = time.perf_counter()
    spec = date_reader()
    print(f"Learning to read dates: regard train {'…'} --data dates --out {out}\n", file=sys.stderr)
    run = train(spec, "dates", out, steps=steps, watchers=progress(), listener=Announcements()).run
    unseen = dates("test", TEST, seed=0)
    answers = run([one.source for one in unseen])
    seconds = time.perf_counter() - began
    print_answers(unseen, answers)
    right = sum(answer == one.target for answer, one in zip(answers, unseen, strict=True))
    print(f"\n{right} of {len(unseen)} unseen dates exactly right, {seconds:.0f} s from start to answers\n")
    print_look(run, unseen, answers)
    page = out / "look.html"
    some = different_locales(unseen, SHOWN)
    replace_file(page, look_page([run.trace(unseen[at].source) for at in some[:4]], "dates").encode())
    print(f"Where each layer and head looked: {page}    How training went: {out / 'report.html'}")
    question = shlex.quote(unseen[some[0]].source)
    print(f"Ask it yourself:  echo {question} | regard run {out}")


def different_locales(unseen: list[Dated], most: int) -> list[int]:
    """Places of the first example of each locale, no two alike."""
    first: dict[str, int] = {}
    for at, one in enumerate(unseen):
        first.setdefault(one.locale.split("_")[0], at)
    return list(first.values())[:most]


def print_answers(unseen: list[Dated], answers: list[str]) -> None:
    for at in different_locales(unseen, SHOWN):
        one = unseen[at]
        mark = "✓" if answers[at] == one.target else f"✗ {one.target}"
        print(f"  {one.locale:<6} {one.source:<40} → {answers[at]} {mark}")


def print_look(run: Run, unseen: list[Dated], answers: list[str]) -> None:
    """One date whose parts change places on the way, drawn in the terminal."""
    chosen = next(
        (at for at in different_locales(unseen, 100) if answers[at] == unseen[at].target and is_long(unseen[at])), 0
    )
    trace = run.trace(unseen[chosen].source)
    matrix = alignment(trace)
    if matrix is not None:
        print("Where it looked (rows: what it wrote; columns: what it read):\n")
        print(draw_alignment(matrix, trace.predictions, trace.source, colour=sys.stdout.isatty()))


def is_long(one: Dated) -> bool:
    return 14 <= len(one.source) <= 28 and one.source.isascii() and not one.source[0].isdigit()
