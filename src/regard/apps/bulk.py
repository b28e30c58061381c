"""Long inputs answered into a file, so that a kill costs a window of lines and no more.

Answers go to ``OUT.part``; after every window the file is synced and ``OUT.journal`` says how many lines are
answered and how long the file is. ``resume`` cuts what was written after that and goes on behind it: the same
windows, the same numbers of lines, so the file ends with the bytes of one that was never stopped. At the end
the part takes the name of the whole.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from regard.apps.session import Run
from regard.core.errors import UsageError
from regard.data.lines import open_bytes, shown
from regard.data.translatable.document import open_document
from regard.search.search import SearchSpec
from regard.tasks.answers import Answer
from regard.tasks.task import WINDOW, Asked, Task, windows
from regard.training.durable import replace_file, sync_folder

_SAY_EVERY = 10.0
"""Seconds between two lines of progress where there is no terminal."""
_HEAD = 1 << 20


class Journal(NamedTuple):
    """How far an answering has come, and what it is of."""

    lines: int
    size: int
    what: dict[str, Any]


class Bulk:
    """One file of answers that is being written."""

    def __init__(self, out: Path, what: dict[str, Any], resume: bool) -> None:
        self.out, self.what = out, what
        self.part, self.journal = (out.with_name(out.name + end) for end in (".part", ".journal"))
        begun = self._begun()
        if begun is None:
            self.lines, self.size = 0, 0
        elif not resume:
            raise UsageError(
                f"{out}: answering was stopped after {begun.lines:,} lines: go on with --resume, "
                f"or remove {self.journal} to begin again"
            )
        else:
            self._refuse_other(begun)
            self.lines, self.size = begun.lines, begun.size

    def answer(
        self,
        task: Task,
        asked: Asked,
        lines: Iterable[str],
        said: Callable[[Answer], str],
        progress: "Progress",
    ) -> int:
        """Write what is said to every line, each asked as ``asked`` says; the number of lines."""
        lines = iter(lines)
        for some in windows(islice(lines, self.lines), WINDOW):
            progress.skip(some)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as part:
            for some in windows(lines, WINDOW):
                for answer in task.answer(asked._replace(texts=some, first_line=self.lines + 1)):
                    part.write(f"{said(answer)}\n".encode())
                self._written(part, len(some))
                progress.advance(some)
        self.part.replace(self.out)
        self.journal.unlink(missing_ok=True)
        sync_folder(self.out.parent)
        return self.lines

    @staticmethod
    def stopped(out: Path) -> bool:
        """Whether an answering was stopped on its way."""
        return out.with_name(f"{out.name}.journal").exists()

    def _begun(self) -> Journal | None:
        if not self.journal.exists():
            return None
        try:
            return Journal(**json.loads(self.journal.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise UsageError(f"{self.journal}: damaged; remove it to begin again") from None

    def _refuse_other(self, begun: Journal) -> None:
        differences = [
            f"{name} was {begun.what.get(name)!r}, is {value!r}"
            for name, value in self.what.items()
            if begun.what.get(name) != value
        ]
        if differences:
            raise UsageError(f"{self.out}: --resume goes on with the same: {'; '.join(differences)}")
        if not self.part.exists() or self.part.stat().st_size < begun.size:
            raise UsageError(f"{self.part}: shorter than {self.journal} says; remove both to begin again")

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        with self.part.open("r+b" if self.size else "wb") as part:
            part.truncate(self.size)
            part.seek(self.size)
            yield part

    def _written(self, part: IO[bytes], lines: int) -> None:
        part.flush()
        os.fsync(part.fileno())
        self.lines, self.size = self.lines + lines, part.tell()
        journal = Journal(self.lines, self.size, self.what)._asdict()
        replace_file(self.journal, json.dumps(journal).encode())


def identity(file: Path) -> dict[str, Any]:
    """What an input is known by: going on with another would mix two answers in one file."""
    if str(file) == "-":
        return {"input": "standard input"}
    with file.open("rb") as opened:
        head = hashlib.sha256(opened.read(_HEAD)).hexdigest()[:16]
    return {"input": f"{file.name}, {file.stat().st_size} bytes, {head}"}


class Destination(NamedTuple):
    """From which file to which, and how."""

    file: Path
    out: Path
    resume: bool
    as_json: bool


def write_lines(
    run: Run,
    search: SearchSpec,
    asked: Asked,
    lines: Iterable[str],
    said: Callable[[Answer], str],
    where: Destination,
) -> None:
    """``regard run --out``."""
    if where.resume and where.out.exists() and not Bulk.stopped(where.out):
        print(f"{where.out}: complete already", file=sys.stderr)
        return
    what = identity(where.file) | {
        "weights": run.seal or str(run.path),
        "search": search.digest(),
        "wishes": repr((asked.wishes, asked.truncate, asked.keep)),
        "precision": run.precision,
        "json": where.as_json,
    }
    if run.listed is not None:
        what["shortlist"] = run.listed.seal
    with Progress(where.file) as progress:
        count = Bulk(where.out, what, where.resume).answer(run.task(search), asked, lines, said, progress)
    print(f"{where.out}: {count:,} lines, {progress.told()}", file=sys.stderr)


def write_document(
    kind: str, file: Path, out: Path | None, answer: Callable[[list[str]], Iterable[Answer]]
) -> None:
    """A document with its texts replaced by their answers, to ``out`` or standard output."""
    with open_bytes(file) as opened:
        document = open_document(opened.read(), kind, shown(file))
    texts = document.texts
    with Progress(None) as progress:
        answers = []
        for found in answer(texts):
            answers.append(found.text)
            if len(answers) % WINDOW == 0:
                progress.advance(texts[len(answers) - WINDOW : len(answers)])
    whole = document.replaced(answers)
    if out is None:
        sys.stdout.write(whole)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, whole.encode())
        print(f"{out}: {len(texts):,} texts of {shown(file)}", file=sys.stderr)


class Progress:
    """Lines a second and, where the size of the input is known, how much is left. A bar on a terminal, a line
    now and then elsewhere."""

    def __init__(self, file: Path | None, quiet: bool = False) -> None:
        known = file is not None and file.suffix != ".gz" and file.is_file()
        self.total = file.stat().st_size if file is not None and known else None
        self.lines = self.read = self.skipped = 0
        self.begun = self.said = time.monotonic()
        self.quiet, self._stack = quiet, ExitStack()
        self._bar: Any = None
        if not quiet and sys.stderr.isatty():
            self._bar = self._stack.enter_context(_bar())
            self._job = self._bar.add_task("answering", total=self.total, said="")

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def skip(self, lines: Sequence[str]) -> None:
        """What an earlier process answered says nothing about the speed of this one."""
        self.read += _bytes(lines)
        self.skipped, self.begun = self.read, time.monotonic()

    def advance(self, lines: Sequence[str]) -> None:
        self.read, self.lines = self.read + _bytes(lines), self.lines + len(lines)
        if self._bar is not None:
            self._bar.update(self._job, completed=self.read, said=self.told())
        elif not self.quiet and time.monotonic() - self.said > _SAY_EVERY:
            self.said = time.monotonic()
            print(self.told(), file=sys.stderr, flush=True)

    def told(self) -> str:
        seconds = max(time.monotonic() - self.begun, 1e-9)
        said = f"{self.lines:,} lines, {self.lines / seconds:,.1f} a second"
        done = self.read - self.skipped
        if self.total is None or not done:
            return said
        left = (self.total - self.read) * seconds / done
        return f"{said}, {_duration(max(0.0, left))} left"


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
    return Bars(*columns, console=Console(stderr=True))


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    )
