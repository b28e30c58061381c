"""Models from and for other programs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.apps.commands.options import AsJson, RunDir, print_json


def import_(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder of a GPT-2, BERT, RoBERTa, ALBERT, ELECTRA, DistilBERT, RoFormer, Marian, BART or "
            "T5 as Hugging Face saves it, or a file of word vectors (word2vec, GloVe).",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Argument(help="Run folder to write.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make a run of a Hugging Face folder or of a file of word vectors, to be used like any other."""
    from regard.apps.exchange import import_run

    done = import_run(source, out)
    if as_json:
        print_json(done._asdict())
    else:
        print(f"{out}: {done.parameters:,} parameters, vocabulary {done.vocabulary:,}, from {source}")
        if done.left:
            more = f" and {len(done.left) - 4} more" if len(done.left) > 4 else ""
            print(
                f"left behind, as a run has no place for it: {', '.join(done.left[:4])}{more}",
                file=sys.stderr,
            )


def export(
    folder: RunDir,
    out: Annotated[
        Path, typer.Argument(help="Folder (hf, ct2, onnx) or file (all others).", show_default=False)
    ],
    to: Annotated[
        str,
        typer.Option(
            help="hf: for Hugging Face transformers; ct2: for CTranslate2; onnx: for onnxruntime; "
            "arpa: n-grams as a file; word2vec, word2vec-binary or glove: the table of words as a file."
        ),
    ],
    family: Annotated[
        str | None, typer.Option(help="hf: as bert, roberta, electra …; the nearest by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a run as another program reads it."""
    from regard.apps.exchange import export_run

    done = export_run(folder, out, to, family)
    if as_json:
        print_json(done._asdict())
    else:
        print(f"{out}: {done.parameters:,} parameters, vocabulary {done.vocabulary:,}, from {folder}")
