"""Options that several commands have, and how all of them print for machines."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

RunDir = Annotated[Path, typer.Argument(help="Run folder made by `regard train`.", show_default=False)]
Data = Annotated[
    str,
    typer.Option(
        help="TSV, CSV, JSONL, Parquet, two line-aligned files 'x.en,x.de' or 'x.{en,de}', a folder with "
        "train/valid/test files, - for standard input, or dates|copy|reverse|sort.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one field of the spec; may be repeated."),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 …; the fastest there is by default.")]
With = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        help="Ask these runs too, as one with the first (an ensemble, an interpolation); one that reads "
        "backwards fills the ___ of a text together with a forward one.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(help="Shares of the runs between commas, the first run's first; equal if not given."),
]
EngineName = Annotated[
    str, typer.Option("--engine", help="auto (the fastest that can do it), torch or ctranslate2.")
]
PrecisionName = Annotated[
    str,
    typer.Option(
        "--precision", help="Of CTranslate2: float32, int8, or auto for the faster on this machine."
    ),
]
WithShortlist = Annotated[
    bool,
    typer.Option(
        "--shortlist",
        help="Translate with words that training pairs put beside those of the source, and frequent ones: "
        "faster, answers may differ a little.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)
