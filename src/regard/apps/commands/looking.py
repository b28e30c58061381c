"""Look into runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.apps.commands.options import AsJson, Device, RunDir, print_json
from regard.core.errors import UsageError

if TYPE_CHECKING:
    from regard.apps.inspector import Inspected


def look(
    folder: RunDir,
    other: Annotated[Path | None, typer.Argument(help="A second run, shown beside the first.")] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="What to look at; repeatable with --html and --json.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Look at this output instead of the model's own, in order.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page here.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others can see the page there.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Look into a run, or two side by side: in a browser, as one HTML file, or as JSON."""
    from regard.apps.inspector import Inspected, question_of, refuse_missing, self_contained
    from regard.training.durable import replace_file

    texts = text or []
    if target and len(target) != len(texts):
        raise UsageError(f"{len(texts)} --text but {len(target)} --target: give one for each, or none")
    if (html is not None or as_json) and not texts:
        raise UsageError("--html and --json show given texts: give at least one --text")
    folders = [folder] if other is None else [folder, other]
    refuse_missing(folders)
    runs = [Inspected(path, device) for path in folders]
    targets: list[str | None] = [*target] if target else [None] * len(texts)
    questions = [question_of(source, wanted) for source, wanted in zip(texts, targets, strict=True)]
    if html is not None:
        title = "regard · " + " · ".join(run.name for run in runs)
        replace_file(html, self_contained(runs, questions, title).encode())
        print(html)
    if as_json:
        for run in runs:
            for question in questions:
                print_json({"run": run.name, **run.look(question, steps=True)})
    if html is None and not as_json:
        serve_inspector(runs, texts, host, port, browser)


def serve_inspector(runs: "list[Inspected]", texts: list[str], host: str, port: int, browser: bool) -> None:
    import webbrowser
    from urllib.parse import quote

    from regard.apps.inspector_server import serve

    def ready(address: str) -> None:
        if texts:
            address += f"#text={quote(texts[0])}"
        print(f"{address}\nCtrl-C ends it.", flush=True)
        if browser:
            webbrowser.open(address)

    serve(runs, host, port, ready)
