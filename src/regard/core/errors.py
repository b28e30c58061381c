"""Errors for people: one message that names the place, both values and the way out.

``RegardError``
 ├── ``UsageError``     what was asked for cannot be done as asked       exit code 2
 ├── ``DataError``      a file, line or field does not hold what it should  exit code 2
 ├── ``RunError``       a run folder is damaged or is not what was expected exit code 2
 └── ``TrainingError``  training itself went wrong                       exit code 1

Anything else that reaches a user as a traceback is a bug of ours.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path


class RegardError(Exception):
    """Something a person can act on. ``exit_code`` is what the command line ends with."""

    exit_code = 1


class UsageError(RegardError):
    exit_code = 2


class DataError(RegardError):
    """Bad data, with its place: ``file:line: field: message``."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.file, self.line, self.field = file, line, field
        place = ""
        if file is not None:
            place = f"{file}:{line}: " if line is not None else f"{file}: "
        elif line is not None:
            place = f"line {line}: "
        if field is not None:
            place += f"{field}: "
        super().__init__(place + message)


class RunError(RegardError):
    exit_code = 2


class TrainingError(RegardError):
    exit_code = 1


def nearest(name: str, options: Iterable[str], most: int = 3) -> str:
    """A half-sentence that helps: " (did you mean 'gru'?)", or the options when none is near."""
    options = sorted(set(options))
    near = difflib.get_close_matches(name, options, n=most, cutoff=0.6)
    if near:
        return f" (did you mean {' or '.join(repr(n) for n in near)}?)"
    if not options:
        return ""
    shown = ", ".join(options[:12]) + (", …" if len(options) > 12 else "")
    return f" (there are: {shown})"
