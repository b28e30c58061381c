"""Training speed beside the peers, in turns, at equal sizes and batches.

    python -m benchmarks.training_speed [--sizes tiny small recurrent] [--train train.en train.de]

A hand-written torch.nn loop and Hugging Face's Trainer always take part. fairseq and eole do when
``REGARD_BENCH_FAIRSEQ`` and ``REGARD_BENCH_EOLE`` name a Python that has them (see ``peers.md``). Peers run
with glibc's thresholds raised, their best setting; Regard runs as it is installed.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine, results
from benchmarks.arena import RAISED_THRESHOLDS, Entry, Standing, contest, say, with_precisions
from benchmarks.corpus import SUBWORDS, prepare
from benchmarks.generated import write_pairs


class Size(NamedTuple):
    """One recipe and the same thing for peers."""

    recipe: str
    layers: int
    width: int
    hidden: int
    heads: int
    dropout: float
    kind: str = "transformer"
    settings: tuple[str, ...] = ()
    """What makes the recipe as large as that."""


SIZES = {
    "tiny": Size("transformer_tiny", 4, 128, 256, 4, 0.3),
    "small": Size("transformer", 3, 256, 1024, 4, 0.1),
    "recurrent": Size(
        "bahdanau",
        1,
        128,
        256,
        1,
        0.3,
        "recurrent",
        (
            "model.encoder.embedding.width=128",
            "model.decoder.embedding.width=128",
            "model.decoder.stack.blocks.0.mixers.0.cell.width=256",
            "model.decoder.stack.blocks.0.mixers.0.readout=128",
        ),
    ),
}


def entries(size: Size, folder: Path, batch_tokens: int) -> list[Entry]:
    common = ["--folder", str(folder), "--batch-tokens", str(batch_tokens)]
    shape = [f"--{name}={getattr(size, name)}" for name in ("layers", "width", "hidden", "heads", "dropout")]
    settings = [word for setting in (*SUBWORDS, *size.settings) for word in ("--set", setting)]
    found = [Entry("regard", "regard_training.py", [*common, "--recipe", size.recipe, *settings])]

    def peer(name: str, *more: str, python: str | None = None) -> None:
        program = f"{name.replace('-', '_')}_training.py"
        chosen = {} if python is None else {"python": python}
        found.append(Entry(name, program, [*common, *shape, *more], RAISED_THRESHOLDS, **chosen))

    peer("hand-written", "--kind", size.kind)
    fairseq, eole = (os.environ.get(f"REGARD_BENCH_{name}") for name in ("FAIRSEQ", "EOLE"))
    if size.kind == "transformer":
        peer("hugging-face")
        if fairseq:
            peer("fairseq", python=fairseq)
    if eole:
        peer("eole", "--kind", "rnn" if size.kind == "recurrent" else "transformer", python=eole)
    return found


def measure(name: str, folder: Path, batch_tokens: int, rounds: int, steps: int) -> dict[str, Any]:
    size = SIZES[name]
    say(f"{name}: {size.recipe}, {batch_tokens} tokens a batch")
    taking_part = with_precisions(entries(size, folder, batch_tokens))
    found = compare(f"{name}: {size}", taking_part, rounds, steps)
    return {"size": size._asdict(), "batch_tokens": batch_tokens, **found}


def compare(title: str, taking_part: Sequence[Entry], rounds: int, steps: int) -> dict[str, Any]:
    """All entries in turns, as a table for people and as JSON; the first is Regard."""
    peak = machine.gemm_gflops()
    with tempfile.TemporaryDirectory() as logs:
        standings, absent = contest(taking_part, rounds, steps, Path(logs))
    peak = max(peak, machine.gemm_gflops())
    ours = standings[0]
    rows = [
        [
            standing.name,
            f"{standing.rate:,.0f}",
            f"{min(standing.rates):,.0f}–{max(standing.rates):,.0f}",
            "" if standing is ours else f"{ours.against(standing):.2f}×",
            f"{100 * share_of_peak(standing, peak):.0f} %",
            f"{100 * standing.padding:.1f} %",
            f"{standing.peak_mb:,.0f}",
            f"{standing.ready['parameters']:,}",
        ]
        for standing in standings
    ]
    header = ["", "tokens/s", "range", "Regard is", "of GEMM peak", "padding", "peak MB", "parameters"]
    print(f"\n{title} ({peak:.0f} GFLOPS peak)\n{results.table(header, rows)}\n", flush=True)
    return {
        "gemm_gflops": peak,
        "absent": absent,
        "contestants": [
            {
                "name": standing.name,
                "ready": standing.ready,
                "tokens_per_second": standing.rate,
                "rates": standing.rates,
                "regard_is_times_faster": ours.against(standing),
                "share_of_peak": share_of_peak(standing, peak),
                "padding": standing.padding,
                "peak_mb": standing.peak_mb,
            }
            for standing in standings
        ],
    }


def share_of_peak(standing: Standing, peak: float) -> float:
    """Arithmetic that a target token and its source token need, against what the machine can do.

    Six operations per weight: one product forward, two backward. The table of words is read on one side and
    multiplied on the other, where it is the output layer: it counts once.
    """
    return standing.rate * 6 * standing.ready["parameters"] / (peak * 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument(
        "--train", nargs=2, type=Path, help="source and target lines; default: generated text"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        train = asked.train or write_pairs(folder, 30_000)
        prepare(folder / "data", tuple(train))
        found = {
            name: measure(name, folder / "data", asked.batch_tokens, asked.rounds, asked.steps)
            for name in asked.sizes
        }
    data = "generated" if asked.train is None else asked.train[0].name
    path = results.write("training_speed", {"machine": machine.facts(), "data": data, "sizes": found})
    say(f"written to {path.name}")


if __name__ == "__main__":
    main()
