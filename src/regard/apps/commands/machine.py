"""What this machine can do."""

from pathlib import Path
from typing import Annotated

import typer

from regard.apps.commands.options import AsJson, print_json


def doctor(as_json: AsJson = False) -> None:
    """What this machine has, and whether anything is in the way."""
    from regard.apps.doctor import examine

    findings = examine()
    if as_json:
        print_json({finding.what: finding.value for finding in findings})
    else:
        for finding in findings:
            print(f"{'ok ' if finding.good else '-- '} {finding.what}: {finding.value}")


def demo(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/demo"),
    steps: Annotated[int | None, typer.Option(help="Train for so many steps only.", min=1)] = None,
) -> None:
    """Learn to read dates in forty languages, in two minutes, and show where the model looked."""
    from regard.apps.demo import show

    show(out, steps)
