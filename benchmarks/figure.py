"""Draw docs/scaling.svg from results/scaling.json and corpus_size.json: `python -m benchmarks.figure`."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from benchmarks.results import RESULTS

DOCS = RESULTS.parent.parent / "docs"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, GAP = 250, 190, 46, 34, 30, 18
PANELS = (
    ("tokens in a sentence", (("length", "transformer_tiny"), ("length_recurrent", "bahdanau"))),
    ("width", (("width", "4+4 layers"),)),
    ("vocabulary", (("vocabulary", "transformer_tiny"),)),
)
Series: TypeAlias = tuple[str, dict[float, float]]
"""A name, and points."""
STYLE = """
  text { font: 11px system-ui, sans-serif; fill: #333 } .title { font-weight: 600 }
  line { stroke: #bbb } path { fill: none; stroke-width: 2 }
  .s0 { stroke: #2b6cb0 } .s1 { stroke: #c05621 } circle.s0 { fill: #2b6cb0 } circle.s1 { fill: #c05621 }
  text.s0 { fill: #2b6cb0; stroke: none } text.s1 { fill: #c05621; stroke: none }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } line { stroke: #555 } }
"""


class Axis(NamedTuple):
    """A logarithmic axis."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
        return [value for value in every if self.low <= value * 1.001 and value <= self.high * 1.001]


def short(value: float) -> str:
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def panel(title: str, series: list[Series], left: float) -> list[str]:
    xs = [x for _, points in series for x in points]
    ys = [y for _, points in series for y in points.values()]
    across = Axis(min(xs), max(xs), left + LEFT, left + WIDTH - 8)
    up = Axis(min(ys) * 0.7, max(ys) * 1.4, HEIGHT - BOTTOM, TOP)
    drawn = [f'<text class="title" x="{left + LEFT}" y="16">{title}</text>']
    for value in up.ticks():
        y = up.at(value)
        drawn.append(f'<line x1="{across.begin:.0f}" x2="{across.end:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(
            f'<text x="{across.begin - 5:.0f}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
        )
    for value in sorted(set(xs)):
        x = across.at(value)
        drawn.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short(value)}</text>'
        )
    for number, (name, points) in enumerate(series):
        placed = [(across.at(x), up.at(y)) for x, y in sorted(points.items())]
        line = " L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
        drawn.append(f'<path class="s{number}" d="M{line}"/>')
        drawn += [f'<circle class="s{number}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in placed]
        x, y = placed[-1]
        drawn.append(f'<text class="s{number}" x="{x:.0f}" y="{y - 8:.0f}" text-anchor="end">{name}</text>')
    return drawn


def by_token() -> Iterator[tuple[str, list[Series]]]:
    measured = measured_by("scaling")
    for title, names in PANELS:
        yield (
            f"µs per token, by {title}",
            [
                (label, {float(key): row["microseconds_per_token"] for key, row in measured[name].items()})
                for name, label in names
            ],
        )


def by_corpus() -> Iterator[tuple[str, list[Series]]]:
    sizes = measured_by("corpus_size")["sizes"]
    seconds = {float(row["pairs"]): row["seconds_to_first_step"] for row in sizes}
    yield "seconds to the first step, by pairs", [("transformer_tiny", seconds)]


def measured_by(benchmark: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{benchmark}.json").read_text(encoding="utf-8"))
    return found


def main() -> None:
    panels = [*by_token(), *by_corpus()]
    drawn: list[str] = []
    for number, (title, series) in enumerate(panels):
        drawn += panel(title, series, number * (WIDTH + GAP))
    size = f'width="{len(panels) * (WIDTH + GAP)}" height="{HEIGHT}"'
    said = "Time by length, width, vocabulary and corpus"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{said}">'
    text = "\n".join((head, f"<style>{STYLE}</style>", *drawn, "</svg>"))
    Path(DOCS / "scaling.svg").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
