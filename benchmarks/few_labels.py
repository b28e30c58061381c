"""How much does having read before help, the fewer labels there are? One table and one figure.

    python -m benchmarks.few_labels --data sst2 --out runs/few --bert RUN --elmo RUN --ulmfit RUN
                                    [--vectors FILE] [--minilm RUN] [--labels 100 500 2000] [--seeds 1 2 3]
    python -m benchmarks.few_labels --out runs/few --figure

``--data`` is a folder with train.tsv and test.tsv (label, text, unless ``--columns`` says otherwise).
Every way to start, frozen and not, learns from the same labels, drawn anew for every seed, for a number of
steps that was chosen before; nothing is selected on other labelled data. Every line of the table is kept as
soon as it is known (``--out``/rows.jsonl): the same command goes on where it was stopped. ULMFiT's run may be
its first stage, or its second on the texts of the task without their labels.
"""

import argparse
import json
import random
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import results
from benchmarks.arena import say

STEPS = {100: 120, 500: 250, 2000: 500}
"""Updates of about fifty sentences each; other numbers of labels: as the nearest one."""
DOCS = results.RESULTS.parent.parent / "docs"


class Way(NamedTuple):
    """One way to begin."""

    name: str
    recipe: str
    frozen: tuple[str, ...] | None
    """Settings where what has been read stays as it is; None: there is nothing to freeze."""
    full: tuple[str, ...]
    """Settings where all of it learns on."""


def _peak(rate: float, *more: str) -> tuple[str, ...]:
    return (f"training.schedule.peak={rate}", *more)


FREEZE = "training.thawing.freeze=all"
WAYS = (
    Way("scratch", "classifier", None, _peak(2e-3)),
    Way("vectors", "classifier", _peak(2e-3, "training.thawing.freeze=embeddings"), _peak(2e-3)),
    Way("bert", "classifier", _peak(2e-3, FREEZE), _peak(3e-4)),
    Way("elmo", "classifier", _peak(5e-3, FREEZE), _peak(1e-3)),
    Way("ulmfit", "ulmfit", _peak(5e-3, FREEZE), _peak(5e-3)),
    Way("minilm", "classifier", _peak(2e-3, FREEZE), _peak(1e-4)),
)


class Row(NamedTuple):
    way: str
    frozen: bool
    labels: int
    seed: int

    @property
    def folder(self) -> str:
        return f"{self.way}-{'frozen' if self.frozen else 'full'}-{self.labels}-{self.seed}"


def rows(starts: dict[str, str], labels: list[int], seeds: list[int]) -> Iterator[Row]:
    """Those with few labels first, all ways side by side: what is there early can be compared."""
    for seed in seeds:
        for count in labels:
            for way in WAYS:
                if way.name == "scratch" or way.name in starts:
                    for frozen in (True, False) if way.frozen is not None else (False,):
                        yield Row(way.name, frozen, count, seed)


def measured(path: Path) -> dict[Row, dict[str, Any]]:
    if not path.exists():
        return {}
    kept = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {Row(*(line[name] for name in Row._fields)): line for line in kept}


def read_pairs(path: Path, columns: list[str]) -> list[tuple[str, str]]:
    text, label = columns.index("text"), columns.index("label")
    with path.open(encoding="utf-8") as file:
        cells = [line.rstrip("\n").split("\t") for line in file if line.strip()]
    return [(row[text], row[label]) for row in cells]


def measure(
    row: Row,
    starts: dict[str, str],
    train: list[Any],
    test: list[Any],
    folder: Path,
    asked_steps: int | None = None,
) -> dict[str, Any]:
    import regard

    way = next(way for way in WAYS if way.name == row.way)
    settings = way.frozen if row.frozen and way.frozen is not None else way.full
    chosen = random.Random(row.seed).sample(train, row.labels)
    steps = asked_steps or STEPS[min(STEPS, key=lambda count: abs(count - row.labels))]
    begins = {"vectors": [starts["vectors"]]} if row.way == "vectors" else {}
    if row.way in ("bert", "elmo", "ulmfit", "minilm"):
        begins = {"start_from": starts[row.way]}
    out, began = folder / row.folder, time.perf_counter()
    shutil.rmtree(out, ignore_errors=True)
    run = regard.train(
        way.recipe,
        data=chosen,
        out=out,
        valid=chosen[:20],
        steps=steps,
        seed=row.seed,
        # The last weights count: there is no other labelled data to select the best by.
        settings=[*settings, f"training.validation.every={steps}", "evaluation.examples=20"],
        **begins,
    ).run
    value = run.evaluate(test, "accuracy").value
    shutil.rmtree(out)
    return {**row._asdict(), "accuracy": value, "steps": steps, "seconds": time.perf_counter() - began}


def summary(found: dict[Row, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    counts = sorted({row.labels for row in found})
    lines = []
    for way, frozen in dict.fromkeys((row.way, row.frozen) for row in found):
        cells = []
        for count in counts:
            values = [
                100 * kept["accuracy"]
                for row, kept in found.items()
                if (row.way, row.frozen, row.labels) == (way, frozen, count)
            ]
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{spread} ({len(values)})" if values else "")
        lines.append([f"{way}, {'frozen' if frozen else 'all of it learns'}", *cells])
    return ["accuracy (seeds)", *(f"{count:,} labels" for count in counts)], lines


COLOURS = {
    "scratch": "#718096",
    "vectors": "#b7791f",
    "bert": "#2b6cb0",
    "elmo": "#2f855a",
    "ulmfit": "#c05621",
    "minilm": "#6b46c1",
}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 560, 320, 46, 120, 30, 34, 12


def draw(found: dict[Row, dict[str, Any]]) -> str:
    """Accuracy by labels, both ways of learning on; bars span all seeds."""
    counts = sorted({row.labels for row in found})
    values = [100 * kept["accuracy"] for kept in found.values()]
    low, high = 5 * (min(values) // 5), 5 * (max(values) // 5 + 1)

    def across(count: int) -> float:
        share = counts.index(count) / max(1, len(counts) - 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP)

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Accuracy by number of labels</title>",
        "<style>text{font:11px system-ui,sans-serif;fill:#333}.t{font-weight:600}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
        f'<text class="t" x="{LEFT}" y="16">accuracy (%), by labels; dashed: what had been read stays</text>',
    ]
    for value in range(int(low), int(high) + 1, 5):
        y = up(value)
        drawn.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
        drawn.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    for count in counts:
        x = across(count)
        drawn.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{count:,}</text>')
    names = list[tuple[float, float, str, str]]()
    for way, frozen in dict.fromkeys((row.way, row.frozen) for row in found):
        points, colour = [], COLOURS[way]
        for count in counts:
            own = [
                100 * kept["accuracy"]
                for row, kept in found.items()
                if (row.way, row.frozen, row.labels) == (way, frozen, count)
            ]
            if own:
                x = across(count)
                points.append((x, up(statistics.mean(own))))
                drawn.append(
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up(min(own)):.1f}" y2="{up(max(own)):.1f}" '
                    f'stroke="{colour}" opacity="0.5"/>'
                )
        line = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="5 3"' if frozen else ""
        drawn.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        x, y = points[-1]
        names.append((y + 4, x + 6, f"{way}, frozen" if frozen else way, colour))
    above = 0.0
    for y, x, name, colour in sorted(names):
        above = max(y, above + LINE)  # none is written over another
        drawn.append(f'<text x="{x:.1f}" y="{above:.1f}" style="fill:{colour}">{name}</text>')
    return "\n".join([*drawn, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with train.tsv and test.tsv")
    parser.add_argument("--train", default="train.tsv", help="the file in --data that labels are drawn from")
    parser.add_argument("--columns", nargs="+", default=["label", "text"])
    parser.add_argument("--steps", type=int, help="of every row, for a quick look; default: by labels")
    parser.add_argument("--out", type=Path, required=True)
    for way in WAYS[1:]:
        parser.add_argument(f"--{way.name}", help="file of word vectors" if way.name == "vectors" else "run")
    parser.add_argument("--labels", type=int, nargs="+", default=list(STEPS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--figure", action="store_true", help="draw docs/few_labels.svg of what is known")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "rows.jsonl"
    found = measured(kept)
    if asked.data is not None:
        train, test = (read_pairs(asked.data / name, asked.columns) for name in (asked.train, "test.tsv"))
        starts = {way.name: given for way in WAYS if (given := getattr(asked, way.name, None))}
        wanted = [row for row in rows(starts, asked.labels, asked.seeds) if row not in found]
        for number, row in enumerate(wanted, start=1):
            found[row] = measure(row, starts, train, test, asked.out, asked.steps)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found[row]) + "\n")
            say(f"{number} of {len(wanted)}: {row.folder}: {100 * found[row]['accuracy']:.1f}")
    if found:
        print(results.table(*summary(found)))
    if asked.figure:
        results.write("few_labels", {"rows": list(found.values())})
        (DOCS / "few_labels.svg").write_text(draw(found), encoding="utf-8")


if __name__ == "__main__":
    main()
