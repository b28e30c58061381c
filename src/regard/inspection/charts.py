"""Curves over training steps as inline SVG: axes, ticks, a legend, and values for a script to read out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 560, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 30
_MOST_POINTS = 300
_LOG_SPAN = 30
"""From this ratio of largest to smallest on, values stand on a logarithmic scale."""


@dataclass(frozen=True)
class Curve:
    name: str
    points: tuple[tuple[float, float], ...]
    """(step, value), by step."""
    tone: int = 0
    """Which of the page's colours for curves."""
    dots: bool = False
    """Few, separate measurements rather than one at every step."""


@dataclass(frozen=True)
class Chart:
    title: str
    curves: tuple[Curve, ...]
    from_zero: bool = False
    may_be_log: bool = False


def thinned(points: Sequence[tuple[float, float]], most: int = _MOST_POINTS) -> list[tuple[float, float]]:
    """At most ``most`` points, each at the end of those it stands for, with their mean."""
    size = max(1, math.ceil(len(points) / most))
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


# ---------------------------------------------------------------- scales


@dataclass(frozen=True)
class Scale:
    """From values to places, and the values worth a mark."""

    low: float
    high: float
    log: bool
    marks: tuple[float, ...]

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(low: float, high: float, marks: int = 5) -> Scale:
    """Ends and marks at multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        spread = abs(low) * 0.1 or 1.0
        low, high = low - spread / 2, high + spread / 2
    step = _round_step((high - low) / marks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale(first * step, last * step, False, tuple(i * step for i in range(first, last + 1)))


def logarithmic(low: float, high: float) -> Scale:
    """Ends and marks at 1, 2 and 5 times powers of ten; powers alone when those are too many."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    first = max(mark for mark in fine if mark <= low * (1 + 1e-9))
    last = min(mark for mark in fine if mark >= high * (1 - 1e-9))
    inside = [mark for mark in fine if first <= mark <= last]
    whole = [mark for mark in inside if math.isclose(math.log10(mark) % 1, 0, abs_tol=1e-9)]
    return Scale(first, last, True, tuple(inside if len(inside) <= 8 else whole))


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def number(value: float) -> str:
    """Short, for people: 0.0003 is 3e-4, 12000 is 12k."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.4g}M"
    if size >= 1e4:
        return f"{value / 1e3:.4g}k"
    if 0 < size < 1e-2:
        return f"{value:.3g}".replace("e-0", "e-") if size < 1e-3 else f"{value:.4g}"
    return f"{value:.4g}"


# ---------------------------------------------------------------- drawing


def draw(chart: Chart, index: int) -> str:
    """``chart`` as a figure; ``index`` is its place in the page's data."""
    x, y = _scales(chart)
    curves = "".join(_curve(curve, x, y) for curve in chart.curves)
    keys = "".join(
        f'<span class="key"><i class="tone{curve.tone}"></i>{escape(curve.name)}</span>'
        for curve in chart.curves
    )
    legend = f'<span class="keys">{keys}</span>' if len(chart.curves) > 1 else ""
    note = ' <span class="note">logarithmic</span>' if y.log else ""
    return f"""<figure class="chart" data-chart="{index}">
<figcaption>{escape(chart.title)}{note}{legend}</figcaption>
<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" tabindex="0" role="img" aria-label="{escape(_described(chart))}">
{_axes(x, y)}{curves}<line class="guide" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" visibility="hidden"/>
</svg>
<p class="readout" aria-live="polite"></p>
</figure>"""


def data(chart: Chart) -> dict[str, Any]:
    """What the script reads out: values, and where along the drawing each step stands."""
    x, _ = _scales(chart)
    return {
        "curves": [
            {
                "name": curve.name,
                "steps": [round(step) for step, _ in curve.points],
                "values": [float(f"{value:.5g}") for _, value in curve.points],
                "places": [round(_across(x, step), 1) for step, _ in curve.points],
            }
            for curve in chart.curves
        ]
    }


def _scales(chart: Chart) -> tuple[Scale, Scale]:
    steps = [step for curve in chart.curves for step, _ in curve.points]
    values = [value for curve in chart.curves for _, value in curve.points]
    low, high = min(values), max(values)
    if chart.may_be_log and low > 0 and high / low >= _LOG_SPAN:
        y = logarithmic(low, high)
    else:
        y = linear(min(0.0, low) if chart.from_zero else low, high)
    across = linear(min(0.0, *steps), max(steps))
    return Scale(across.low, max(steps) or 1.0, False, tuple(m for m in across.marks if m <= max(steps))), y


def _across(x: Scale, step: float) -> float:
    return _LEFT + x.share(step) * (_WIDTH - _LEFT - _RIGHT)


def _down(y: Scale, value: float) -> float:
    return _HEIGHT - _BOTTOM - y.share(value) * (_HEIGHT - _TOP - _BOTTOM)


def _axes(x: Scale, y: Scale) -> str:
    floor = _HEIGHT - _BOTTOM
    parts = [f'<line class="floor" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{floor}" y2="{floor}"/>']
    for mark in y.marks:
        at = _down(y, mark)
        parts.append(f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text class="mark" x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{number(mark)}</text>'
        )
    for mark in x.marks:
        at = _across(x, mark)
        where = "end" if at > _WIDTH - _RIGHT - 12 else "middle"
        parts.append(
            f'<text class="mark" x="{at:.1f}" y="{_HEIGHT - 8}" text-anchor="{where}">{number(mark)}</text>'
        )
    return "".join(parts)


def _curve(curve: Curve, x: Scale, y: Scale) -> str:
    places = [(f"{_across(x, step):.1f}", f"{_down(y, value):.1f}") for step, value in curve.points]
    line = " ".join(f"{across},{down}" for across, down in places)
    drawn = f'<polyline class="curve tone{curve.tone}" points="{line}"/>'
    if curve.dots or len(places) == 1:
        drawn += "".join(f'<circle class="dot tone{curve.tone}" cx="{a}" cy="{d}" r="3"/>' for a, d in places)
    return drawn


def _described(chart: Chart) -> str:
    """For those who cannot see it: where each curve starts and ends."""
    ends = [
        f"{curve.name} from {number(curve.points[0][1])} to {number(curve.points[-1][1])}"
        for curve in chart.curves
    ]
    return f"{chart.title} over steps: {'; '.join(ends)}. Arrow keys read values."
