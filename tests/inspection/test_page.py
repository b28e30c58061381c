"""The page: complete in itself, safe whatever a model says, small."""

import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import numpy as np
import pytest

from regard.inspection import page, report
from regard.inspection.document import asset, bundle, document, json_in_html
from regard.inspection.packing import unpack
from regard.inspection.trace import Trace

from . import small
from .reading import assert_self_contained, read

HOSTILE = [
    "</script><b>",
    "<img src=x onerror=alert(1)>",
    "&amp;",
    "\"'",
    "<!--",
    "https://x.y",
    "שלום",
    "\u2028",
    "{{x}}",
]


def page_of(traces: list[Trace], title: str) -> str:
    """Examples as a report has them, and nothing else."""
    body = f"<h1>{escape(title)}</h1><main>{page.examples(traces)}</main>"
    return document(title, body, page.STYLES, page.SCRIPTS, {"examples": page.examples_data(traces)})


def test_a_page_needs_nothing_from_outside() -> None:
    assert_self_contained(page_of([small.trace_of(small.transformer())], "runs/x"))


def test_the_page_carries_what_was_seen() -> None:
    traces = [small.trace_of(small.transformer()), small.trace_of(small.looking_first())]
    found = read(page_of(traces, "runs/x"))
    assert [element.text for element in found.all("h1")] == ["runs/x"]
    assert [element.text for element in found.all("button", class_="token")] == [
        piece for trace in traces for piece in (*trace.source, *trace.predictions)
    ]
    shares = [
        float(element.attributes["style"].removeprefix("--p:"))
        for element in found.all("button")
        if "style" in element.attributes
    ]
    np.testing.assert_allclose(shares, np.exp([p for trace in traces for p in trace.log_probs]), atol=6e-4)
    for shown, trace in zip(found.data["examples"], traces, strict=True):
        for one, other in zip(Trace.from_dict(shown).attentions, trace.attentions, strict=True):
            assert (one.name, one.rows, one.columns) == (other.name, other.rows, other.columns)
            np.testing.assert_allclose(one.weights, other.weights, atol=1 / 500)
    aligned = unpack(found.data["examples"][1]["views"]["alignment"]["weights"])
    np.testing.assert_allclose(aligned, traces[1].attentions[0].weights, atol=1 / 500)
    first = found.data["examples"][0]
    assert set(first["views"]) == {"alignment", "rollout"}
    pictures = [*first["attentions"], *first["views"].values()]
    assert {picture["weights"]["encoding"] for picture in pictures} == {"uint8"}  # all that the scripts read


def test_nothing_a_model_says_becomes_markup() -> None:
    html = page_of([small.made_up(HOSTILE, HOSTILE)], "<i>&")
    assert_self_contained(html)
    found = read(html)
    tokens = [element.text for element in found.all("button", class_="token")]
    assert tokens == [*(piece.replace("\u2028", "⏎") for piece in HOSTILE * 2), "⟨end⟩"]
    assert found.all("h1")[0].text == found.all("title")[0].text == "<i>&"
    assert found.data["examples"][0]["source"] == HOSTILE
    assert not [element for element in found.elements if element.tag in ("b", "i", "img")]
    assert json_in_html("</script>") == '"\\u003c/script\\u003e"'


def test_each_line_runs_in_its_own_direction() -> None:
    found = read(page_of([small.made_up(["▁3", "▁במאי"], ["1979", "-"])], "x"))
    assert [line.attributes["dir"] for line in found.all("ol")] == ["rtl", "ltr"]


def test_twelve_layers_of_twelve_heads_over_64_tokens_stay_small() -> None:
    words = [f"▁{number}" for number in range(64)]
    trace = small.made_up(words, words[:-1], layers=4, heads=12)  # 4 layers of 3 kinds: 144 heads of 64 × 64
    assert sum(seen.heads for seen in trace.attentions) == 144
    assert {seen.weights.shape[1:] for seen in trace.attentions} == {(64, 64)}
    assert len(page_of([trace], "x").encode()) < 1_000_000


def test_a_model_that_looks_at_nothing_has_a_page_too() -> None:
    found = read(page_of([small.trace_of(small.bottleneck())], "x"))
    assert found.data["examples"][0]["views"] == {}
    assert len(found.all("button", class_="token")) == 9


# ---------------------------------------------------------------- scripts

SCRIPTS = sorted({*page.SCRIPTS, *report._SCRIPTS})
IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+\.js)";$', re.MULTILINE)
DECLARED = re.compile(r"^(export )?(?:function|class|const|let) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("scripts", [page.SCRIPTS, report._SCRIPTS])
def test_scripts_join_into_one(scripts: tuple[str, ...]) -> None:
    declared: dict[str, str] = {}
    for place, name in enumerate(scripts):
        text = asset(name)
        assert text.count("import {") == len(IMPORT.findall(text)), "an import must fit on one line"
        for names, file in IMPORT.findall(text):
            assert file in scripts[:place], f"{name} imports {file}, which must come before it"
            exported = {word for export, word in DECLARED.findall(asset(file)) if export}
            assert set(names.split(", ")) <= exported
        for _, word in DECLARED.findall(text):
            assert word not in declared, f"{word} is declared in {declared[word]} and {name}"
            declared[word] = name
    assert not re.search(r"^(import|export)\b", bundle(scripts), re.MULTILINE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_write_markup(name: str) -> None:
    for danger in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert danger not in asset(name)


@pytest.mark.parametrize("name", [*SCRIPTS, "bundle"])
def test_scripts_parse(name: str, tmp_path: Path) -> None:
    code = bundle(report._SCRIPTS) if name == "bundle" else asset(name)
    assert _balanced(code)
    node = shutil.which("node")
    if node is not None:
        file = tmp_path / "script.mjs"
        file.write_text(code, encoding="utf-8")
        done = subprocess.run([node, "--check", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


NO_CODE = (
    r"/\*.*?\*/",
    r"//[^\n]*",
    r'"(?:\\.|[^"\\\n])*"',
    r"`(?:\\.|[^`\\])*`",
    r"/(?![ *])(?:\\.|\[[^\]]*\]|[^/\n\\])+/[gmu]*(?=[,)])",
)


def _balanced(code: str) -> bool:
    """Brackets close in order, once comments, strings and regular expressions are out of the way."""
    bare = re.sub("|".join(NO_CODE), "", code, flags=re.DOTALL)
    pairs, waiting = {")": "(", "]": "[", "}": "{"}, list[str]()
    for character in bare:
        if character in "([{":
            waiting.append(character)
        elif character in pairs and (not waiting or waiting.pop() != pairs[character]):
            return False
    return not waiting
