"""The report of a run: how it learned, on what, what it answers now, and where it looks.

Events are the lines of ``log.jsonl``. A log may be cut short, may hold steps twice (training went on from a
checkpoint before them) and may lack fields; what is there is shown.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, TypeGuard

from regard.inspection import charts, page
from regard.inspection.charts import Chart, Curve
from regard.inspection.document import document
from regard.inspection.trace import Trace

_STYLES = (*page.STYLES, "report.css")
_SCRIPTS = (*page.SCRIPTS, "charts.js")
_PLAIN = "trained"
"""The variant of weights that are just as training left them."""


def report_page(
    title: str,
    spec_yaml: str,
    events: Sequence[Mapping[str, Any]],
    samples: Sequence[Mapping[str, Any]],
    traces: Sequence[Trace],
    facts: Mapping[str, Any],
) -> str:
    """One HTML file that needs no network. ``samples`` have a source, a reference and an answer."""
    drawn = learning_charts(events)
    figures = "\n".join(charts.draw(chart, index) for index, chart in enumerate(drawn))
    sections = [
        _section("Learning", f'<div class="charts">{figures}</div>' if figures else ""),
        _section("Notices", _notices(events)),
        _section("Answers", _samples(samples)),
        _section("Where it looks", page.examples(traces, opened=False)),
        _section("Facts", _facts(facts)),
        _section(
            "Specification", f"<details><summary>All of it</summary><pre>{escape(spec_yaml)}</pre></details>"
        ),
    ]
    body = f"""<header class="masthead"><h1>{escape(title)}</h1><p>{escape(_headline(events))}</p></header>
<main>
{"".join(sections)}
</main>"""
    data = {"examples": page.examples_data(traces), "charts": [charts.data(chart) for chart in drawn]}
    return document(title, body, _STYLES, _SCRIPTS, data)


def _section(heading: str, content: str) -> str:
    if not content:
        return ""
    return f'<section class="part"><h2>{heading}</h2>\n{content}\n</section>\n'


# ---------------------------------------------------------------- curves


def learning_charts(events: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Loss, then each metric of validation, then the learning rate and the speed."""
    steps, checks = _by_step(events, "step"), _by_step(events, "validation")
    names = {name: None for check in checks for name in check.get("scores") or {}}
    found = [
        Chart("Loss", (_trained(steps, "loss", "training"), *_measured(checks, "loss")), may_be_log=True)
    ]
    found += [
        Chart(name.capitalize(), _measured(checks, name), may_be_log=name == "perplexity")
        for name in names
        if name != "loss"
    ]
    found += [
        Chart("Learning rate", (_trained(steps, "rate", "rate"),), from_zero=True),
        Chart(
            "Tokens per second", (_trained(steps, "tokens_per_second", "tokens per second"),), from_zero=True
        ),
    ]
    return [kept for chart in found if (kept := _without_empty(chart)).curves]


def _by_step(events: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """The last word on every step (and, for averaged weights, variant)."""
    last = {
        (event["step"], str(event.get("variant", ""))): event
        for event in events
        if event.get("event") == kind and _finite(event.get("step"))
    }
    return sorted(last.values(), key=lambda event: event["step"])


def _trained(steps: Sequence[Mapping[str, Any]], field: str, name: str) -> Curve:
    points = [(float(s["step"]), float(s[field])) for s in steps if _finite(s.get(field))]
    return Curve(name, tuple(charts.thinned(points)))


def _measured(checks: Sequence[Mapping[str, Any]], score: str) -> tuple[Curve, ...]:
    """A curve for each way of averaging the weights."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for check in checks:
        value = (check.get("scores") or {}).get(score)
        if _finite(value):
            curves.setdefault(str(check.get("variant", _PLAIN)), []).append(
                (float(check["step"]), float(value))
            )
    names = {variant: "validation" if variant == _PLAIN else f"validation, {variant}" for variant in curves}
    return tuple(
        Curve(names[variant], tuple(points), tone=1 if variant == _PLAIN else 2, dots=True)
        for variant, points in curves.items()
    )


def _without_empty(chart: Chart) -> Chart:
    curves = tuple(curve for curve in chart.curves if curve.points)
    return Chart(chart.title, curves, chart.from_zero, chart.may_be_log)


def _finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# ---------------------------------------------------------------- words


def _headline(events: Sequence[Mapping[str, Any]]) -> str:
    """How far it came, in one line."""
    reached = [event for event in events if _finite(event.get("step"))]
    if not reached:
        return "Not trained yet"
    words = [f"{max(int(event['step']) for event in reached):,} steps"]
    seconds = [event["seconds"] for event in reached if _finite(event.get("seconds"))]
    if seconds:
        words.append(_duration(float(max(seconds))))
    ends = [event for event in events if event.get("event") == "end"]
    end: Mapping[str, Any] = ends[-1] if ends else {}
    if _finite(end.get("best")) and _finite(end.get("best_step")):
        words.append(f"best {charts.number(float(end['best']))} at step {int(end['best_step']):,}")
    if end.get("reason"):
        words.append(f"ended: {end['reason']}")
    return " · ".join(words)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _notices(events: Iterable[Mapping[str, Any]]) -> str:
    lines = "".join(
        f"<li>step {escape(str(event.get('step', '?')))}: {escape(str(event.get('message', '')))}</li>"
        for event in events
        if event.get("event") == "notice"
    )
    return f"<ul>{lines}</ul>" if lines else ""


def _samples(samples: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(_sample(sample) for sample in samples)
    return f'<ol class="samples">{rows}</ol>' if rows else ""


def _sample(sample: Mapping[str, Any]) -> str:
    source, reference, answer = (sample.get(name) for name in ("source", "reference", "answer"))
    same = answer is not None and answer == reference
    lines = [("source", source, ""), ("answer", answer, " same" if same else "")]
    if not same:
        lines.append(("reference", reference, ""))
    described = "".join(
        f'<dt>{name}</dt><dd class="{name}{extra}" dir="auto">{escape(str(text))}</dd>'
        for name, text, extra in lines
        if text is not None
    )
    return f"<li><dl>{described}</dl></li>"


def _facts(facts: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(_shown(value))}</td></tr>'
        for name, value in _flat(facts)
    )
    return f"<table>{rows}</table>" if rows else ""


def _flat(facts: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in facts.items():
        full = f"{before}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{full} · ")
        else:
            yield full, value


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(item) for item in value)
    return str(value)
