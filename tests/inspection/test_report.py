"""The report shows whatever the log holds, and fails on none of it."""

import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.inspection import charts
from regard.inspection.charts import Chart, Curve
from regard.inspection.report import learning_charts, report_page

from . import small
from .reading import assert_self_contained, read

SPEC = "model:\n  kind: <b>&\n"


def _step(step: int, **fields: Any) -> dict[str, Any]:
    return {
        "event": "step",
        "step": step,
        "loss": 8 / step,
        "rate": 1e-3,
        "tokens_per_second": 900.0,
    } | fields


def _validation(step: int, variant: str = "trained", **scores: Any) -> dict[str, Any]:
    return {"event": "validation", "step": step, "scores": scores, "variant": variant, "best": True}


EVENTS = [
    {"event": "start", "step": 0, "steps": 4, "seconds": 0.0, "budget": None},
    *(_step(step) for step in range(1, 5)),
    _validation(2, loss=3.5, exact=0.25),
    _validation(4, loss=2.5, exact=0.75),
    _validation(4, "averaged", loss=2.25, exact=0.875),
    {"event": "notice", "step": 3, "message": "one <batch> was halved"},
    {"event": "end", "step": 4, "reason": "all steps done", "best": 0.875, "best_step": 4, "seconds": 61.7},
]
SAMPLES = [
    {"source": "3 mai 1979", "reference": "1979-05-03", "answer": "1979-05-03"},
    {"source": "<b>5/3</b>", "reference": "1979-05-03", "answer": "1979-03-05"},
]
FACTS = {
    "training_pairs": 25000,
    "padding": 0.03125,
    "mapped": False,
    "seen": None,
    "longest": {"source": 41},
}


def test_the_report_says_what_happened() -> None:
    html = report_page("dates & more", SPEC, EVENTS, SAMPLES, [small.trace_of(small.transformer())], FACTS)
    assert_self_contained(html)
    found = read(html)
    assert found.all("h1")[0].text == "dates & more"
    headline = "4 steps · 1 min 2 s · best 0.875 at step 4 · ended: all steps done"
    assert headline in [element.text for element in found.all("p")]
    assert [element.text for element in found.all("figcaption")] == [
        "Losstrainingvalidationvalidation, averaged",
        "Exactvalidationvalidation, averaged",
        "Learning rate",
        "Tokens per second",
    ]
    assert [element.text for element in found.all("dd")] == [
        "3 mai 1979", "1979-05-03", "<b>5/3</b>", "1979-03-05", "1979-05-03",
    ]  # fmt: skip
    assert [element.text for element in found.all("td")] == ["25,000", "0.03125", "no", "–", "41"]
    assert found.all("pre")[0].text == SPEC
    assert "step 3: one <batch> was halved" in [element.text for element in found.all("li")]
    assert len(found.all("section", class_="example")) == 1
    loss = found.data["charts"][0]["curves"]
    assert [(curve["name"], curve["steps"], curve["values"]) for curve in loss] == [
        ("training", [1, 2, 3, 4], [8.0, 4.0, 2.6667, 2.0]),
        ("validation", [2, 4], [3.5, 2.5]),
        ("validation, averaged", [4], [2.25]),
    ]


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"event": "start"}],
        [{"event": "step"}, {"event": "step", "step": 1}, {"event": "validation", "step": 1, "scores": None}],
        [_step(1, loss=None, rate=math.nan), _validation(1, loss=math.inf), {"event": "end", "step": 1}],
        [_step(7, loss=0.0, rate=0.0)],
        [{"unknown": 1}, {"event": "notice"}, {"event": "step", "step": True, "loss": "x"}],
    ],
)
def test_a_poor_log_still_gives_a_report(events: list[dict[str, Any]]) -> None:
    assert_self_contained(report_page("x", "", events, [{}, {"answer": "y"}], [], {}))


def test_steps_gone_through_twice_count_once() -> None:
    events = [_step(1), _step(2), _step(3, loss=99.0), _step(3, loss=7.0), _step(4)]
    assert learning_charts(events)[0].curves[0].points == ((1, 8), (2, 4), (3, 7), (4, 2))


def test_long_logs_are_thinned_to_means() -> None:
    points = [(float(step), float(step % 2)) for step in range(1, 1001)]
    thin = charts.thinned(points, most=100)
    assert len(thin) == 100
    assert thin[0] == (10, 0.5)
    assert thin[-1] == (1000, 0.5)


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0.0, 10.0, [0, 2, 4, 6, 8, 10]),
        (0.13, 0.87, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-3.0, 3.0, [-4, -2, 0, 2, 4]),
        (5.0, 5.0, [4.7, 4.8, 4.9, 5, 5.1, 5.2, 5.3]),
    ],
)
def test_marks_are_round(low: float, high: float, marks: list[float]) -> None:
    scale = charts.linear(low, high)
    assert scale.marks == pytest.approx(marks)
    assert scale.low <= low <= high <= scale.high


def test_ratios_are_marked_by_powers() -> None:
    scale = charts.logarithmic(0.03, 8.0)
    assert (scale.low, scale.high) == pytest.approx((0.02, 10))
    assert scale.share(0.02) == pytest.approx(0)
    assert scale.share(math.sqrt(0.2)) == pytest.approx(0.5)
    assert charts.logarithmic(0.3, 8.0).marks == pytest.approx((0.2, 0.5, 1, 2, 5, 10))
    assert charts.logarithmic(0.0003, 8.0).marks == pytest.approx((0.001, 0.01, 0.1, 1, 10))


NUMBERS = st.floats(-1e9, 1e9, allow_subnormal=False).map(lambda value: value if abs(value) > 1e-9 else 0.0)


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.booleans(), st.integers(0, 10**6))
def test_curves_stay_inside_their_drawing(values: list[float], from_zero: bool, first: int) -> None:
    points = tuple((float(first + place), value) for place, value in enumerate(values))
    chart = Chart("<x>", (Curve("a&b", points, dots=True),), from_zero, may_be_log=True)
    drawn = charts.draw(chart, 0)
    (svg,) = re.findall(r"<svg.*</svg>", drawn, re.DOTALL)
    tree = ElementTree.fromstring(svg)
    (line,) = tree.iter("polyline")
    places = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert all(0 <= across <= 560 and 0 <= down <= 250 for across, down in places)
    heights = [-down for _, down in places]
    assert all((one <= two) or (high <= low) for (one, low) in zip(values, heights, strict=True)
               for (two, high) in zip(values, heights, strict=True) if abs(low - high) > 0.2)  # fmt: skip
    assert charts.data(chart)["curves"][0]["places"] == pytest.approx([across for across, _ in places])


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.25, "0.25"), (1500.0, "1500"), (12000.0, "12k"), (2.5e6, "2.5M"), (0.0003, "0.0003"),
     (3e-5, "3e-5"), (-0.5, "-0.5")],
)  # fmt: skip
def test_numbers_are_short(value: float, shown: str) -> None:
    assert charts.number(value) == shown
