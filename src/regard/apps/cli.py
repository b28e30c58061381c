"""The command line: all commands by name. Starting it imports nothing heavy: ``--help`` must be instant."""

import os
import sys
from collections.abc import Callable

import typer

from regard.apps.commands import answering, exchanging, learning, looking, machine, serving
from regard.core.errors import RegardError

app = typer.Typer(
    help="Attention-era sequence models: train on a laptop, decode fast, see what the model looks at.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "train": learning.train,
    "run": answering.run,
    "eval": answering.evaluate,
    "score": answering.score,
    "recipes": learning.recipes,
    "diff": learning.diff,
    "shortlist": learning.shortlist,
    "look": looking.look,
    "import": exchanging.import_,
    "export": exchanging.export,
    "serve": serving.serve,
    "key": serving.key,
    "doctor": machine.doctor,
    "demo": machine.demo,
}
for name, command in COMMANDS.items():
    app.command(name=name)(command)


def main() -> None:
    """Errors become one clear line on stderr and an exit code; results go to stdout only."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except RegardError as error:
        print(f"regard: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has seen enough (`regard run … | head`); nothing more may be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"regard: {error.filename or 'input/output'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
