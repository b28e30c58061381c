"""Answer over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from regard.apps.commands.options import Device, EngineName, PrecisionName, WithShortlist


def serve(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]DIR…", help="Runs; a name is the folder's if not given.", show_default=False
        ),
    ],
    host: Annotated[str, typer.Option(help="Where to listen; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.", min=0, max=65535)] = 8000,
    languages: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]FROM:TO", help="What a run translates, as in en:de; repeatable."),
    ] = None,
    detect: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The classifier among the runs that tells languages apart."),
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="Ask for a key; see `regard key`.")] = None,
    per_minute: Annotated[int | None, typer.Option(help="Requests a minute of one client.", min=1)] = None,
    queue: Annotated[int, typer.Option(help="Requests that may wait; others get 503.", min=1)] = 256,
    deadline: Annotated[float, typer.Option(help="Seconds until an answer is given up.", min=0.01)] = 60.0,
    texts: Annotated[int, typer.Option(help="Most texts of a request.", min=1)] = 128,
    body: Annotated[int, typer.Option(help="Most bytes of a request.", min=1)] = 2_000_000,
    loaded: Annotated[
        int | None, typer.Option(help="Runs in memory at a time; all by default.", min=1)
    ] = None,
    preload: Annotated[bool, typer.Option("--preload", help="Load all runs before answering.")] = False,
    inspect: Annotated[
        bool, typer.Option("--look", help="The inspector of the first two runs under /look.")
    ] = False,
    drain: Annotated[float, typer.Option(help="Seconds to finish what was accepted.", min=0)] = 60.0,
    device: Device = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "float32",
    shortlist: WithShortlist = False,
) -> None:
    """Answer over HTTP, for clients of LibreTranslate and OpenAI and for your own."""
    from functools import partial

    from regard.apps.serving.assembly import Wanted, application
    from regard.apps.serving.limits import Limits
    from regard.apps.serving.offers import listed, mounted_inspector, offers_of, refuse_without_shortlist
    from regard.apps.serving.process import serve as serve_forever
    from regard.apps.session import load
    from regard.engines.choice import wanted_engine, wanted_precision

    limits = Limits(
        queue=queue, deadline=deadline, texts=texts, body=body, per_minute=per_minute, drain=drain
    )
    wanted = Wanted(offers_of(folders, languages or []), limits, keys, detect, preload, loaded)
    page = mounted_inspector(device, [host]) if inspect else None
    opening = partial(
        load, device=device, engine=wanted_engine(engine), precision=wanted_precision(precision)
    )
    if shortlist:
        refuse_without_shortlist(wanted.offers)
    serve_forever(
        application(wanted, lambda folder: opening(folder, shortlist=shortlist and listed(folder)), page),
        host,
        port,
        drain,
    )


def key(
    file: Annotated[Path, typer.Argument(help="File of keys; made if there is none.", show_default=False)],
    name: Annotated[str, typer.Argument(help="Whose key it is.", show_default=False)],
    per_minute: Annotated[int | None, typer.Option(help="Requests a minute of this key.", min=1)] = None,
) -> None:
    """Make a key for `regard serve --keys FILE`. It is shown once; the file holds its hash."""
    from regard.apps.serving.keys import create_key

    print(create_key(file, name, per_minute))
