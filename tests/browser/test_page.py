"""Every view of the inspector, seen and used in a browser."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.apps.inspector import Inspected, question_of, self_contained

Look = Callable[..., Any]


def settled(page: Any, act: Callable[[], object]) -> None:
    """Do something and wait until the page has drawn what it changed."""
    before = page.get_attribute("body", "data-ready")
    act()
    page.wait_for_function(
        "before => document.body.dataset.ready !== before && !document.body.classList.contains('waiting')",
        arg=before,
    )


def go(page: Any, view: str) -> None:
    settled(page, lambda: page.get_by_role("tab", name=view).click())


def saved(page: Any, name: str) -> bytes:
    with page.expect_download() as download:
        page.locator(".view").get_by_role("button", name=name, exact=True).first.click()
    return Path(download.value.path()).read_bytes()


def test_alignment_is_drawn_linked_saved_and_in_the_address(look: Look) -> None:
    page = look(state="#text=abcd")
    assert page.locator(".line .token").count() > 5
    page.locator(".line").nth(1).locator(".token").first.hover()
    assert page.locator(".names.side .name.lit").count() == 1
    page.locator(".frame").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "looks at" in page.locator(".readout").first.inner_text()
    options = page.get_by_label("Map", exact=True).locator("option").all_inner_texts()
    assert {"Alignment (mean of heads)", "Rollout from source to output", "Decoder 1 → source"} <= set(
        options
    )
    settled(page, lambda: page.get_by_label("Map", exact=True).select_option(label="Decoder 2 → source"))
    settled(page, lambda: page.get_by_label("Head", exact=True).select_option(label="Head 2"))
    assert "head=1" in page.url
    again = look(address=page.url)
    assert again.get_by_label("Head", exact=True).input_value() == "1"
    rows = list(csv.reader(io.StringIO(saved(page, "CSV").decode())))
    assert sum(map(float, rows[1][1:])) == pytest.approx(1, abs=0.02)
    assert saved(page, "SVG").startswith(b"<svg")
    assert saved(page, "PNG").startswith(b"\x89PNG")
    assert json.loads(saved(page, "JSON"))["columns"] == rows[0][1:]


def test_heads_as_lines_and_all_of_them_sorted_by_what_they_do(look: Look) -> None:
    page = look(state="#text=abcd&view=heads")
    assert page.locator(".arcs path").count() > 1
    assert page.locator(".thumb").count() == 12
    settled(page, lambda: page.get_by_label("Sort by", exact=True).select_option(label="Previous token"))
    shares = [float(text.split()[-1]) for text in page.locator(".thumb-deed").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    settled(page, lambda: page.locator(".thumb").first.click())
    assert page.locator(".chip.on").count() == 1
    settled(page, lambda: page.locator(".arc-token").nth(1).click())
    assert page.locator(".token.pinned").count() == 1


def test_six_steps_lead_from_queries_to_a_sum(look: Look) -> None:
    page = look(state="#text=abcd&view=steps")
    assert "the weights sum to 1.000" in page.locator(".steps tfoot").inner_text()
    weights = [float(text) for text in page.locator(".steps td.weight").all_inner_texts()]
    assert sum(weights) == pytest.approx(1, abs=0.003)
    settled(
        page, lambda: page.get_by_label("Attention", exact=True).select_option(label="Decoder 1 → itself")
    )
    assert page.locator(".steps tr.masked").count() > 0
    recurrent = look("recurrent", state="#text=abcd&view=steps")
    assert "tanh" in recurrent.locator(".steps thead").inner_text()
    assert "the weights sum to 1.000" in recurrent.locator(".steps tfoot").inner_text()


def test_a_token_is_forced_and_the_rest_is_found_anew(look: Look) -> None:
    page = look(state="#text=abcd&view=search")
    original = page.locator(".line").nth(1).inner_text()
    second = page.locator(".following tbody tr").nth(1)
    piece = second.locator("th").inner_text()
    settled(page, second.get_by_role("button").click)
    assert "begin=" in page.url
    assert page.locator(".line").nth(1).locator(".token").first.inner_text() == piece
    assert page.locator(".forced").is_visible()
    settled(page, page.get_by_role("button", name="Let it choose again").click)
    assert page.locator(".line").nth(1).inner_text() == original
    settled(page, page.locator(".tree .node").nth(2).click)
    assert page.locator(".following tbody tr").count() > 0
    before = page.locator(".tree .node").count()
    settled(page, page.get_by_label("Show what was pruned").click)
    assert page.locator(".tree .node").count() > before


def test_a_head_is_switched_off_and_the_difference_is_shown(look: Look) -> None:
    page = look(state="#text=abcd&view=intervene")
    settled(page, page.get_by_role("button", name="Decoder 1 → source: switch off head 1").click)
    assert page.locator(".outcome dt").all_inner_texts() == ["Original", "Now"]
    changes = page.locator(".outcome tbody tr td:last-child").all_inner_texts()
    assert any(text not in ("0.000", "−0.000") for text in changes)
    settled(page, page.get_by_role("button", name="Decoder 1 → itself: look at everything alike").click)
    settled(page, page.get_by_role("button", name="encoder 1 · sublayer 1").click)
    assert len(json.loads(page.evaluate("new URLSearchParams(location.hash.slice(1)).get('do')"))) == 3
    settled(page, page.get_by_role("button", name="Undo all").click)
    assert page.locator(".outcome").count() == 0
    page.get_by_text("Draw where a token looks").click()
    page.locator(".sliders input").first.fill("1")
    settled(page, page.get_by_role("button", name="Look as drawn").click)
    assert page.locator(".outcome").count() == 1
    page.get_by_role("button", name="Measure every head").click()
    page.get_by_text("Most is lost without").wait_for()


def test_words_positions_and_cuts(look: Look) -> None:
    page = look(state="#text=abcd&view=words")
    page.get_by_label("Sentences, one a line").fill("abc\nbca")
    settled(page, page.get_by_role("button", name="Compare").click)
    assert page.locator(".sentences .tokens").count() == 2
    settled(page, page.locator(".sentences .token").nth(1).click)
    assert page.locator(".near").count() >= 2
    settled(page, page.get_by_role("button", name="Positions").click)
    assert page.locator("canvas.picture").is_visible()
    settled(page, page.get_by_role("button", name="How words are cut").click)
    assert page.locator(".merges").count() >= 1
    learned = look("writing", state="#text=abc&view=words&sub=positions")
    assert "added to the input" in learned.get_by_label("Positions", exact=True).inner_text()


def test_a_probe_shows_differences_and_is_exported(look: Look) -> None:
    page = look(state="#view=probe")
    page.get_by_label("Template").fill("{abc,fed}\t{cba,def}")
    settled(page, page.get_by_role("button", name="Run", exact=True).click)
    assert page.locator(".probe tbody tr").count() == 2
    rows = list(csv.reader(io.StringIO(saved(page, "CSV").decode())))
    assert len(rows) == 5
    page.get_by_label("Template").fill("no slots")
    settled(page, page.get_by_role("button", name="Run", exact=True).click)
    assert "no slot" in page.locator(".failure").inner_text()


def test_the_run_shows_how_it_learned(look: Look) -> None:
    page = look(state="#view=run")
    assert page.locator(".chart .curve").count() >= 3
    assert page.locator(".sample").count() >= 1
    page.get_by_text("Specification").click()
    assert "encoder:" in page.locator("pre").inner_text()


def test_two_runs_stand_side_by_side(look: Look) -> None:
    page = look("reversing", "writing", state="#text=abc")
    assert page.locator(".pane h2").all_inner_texts() == ["reversing", "writing"]
    first, second = (page.locator(".pane").nth(i).bounding_box() for i in (0, 1))
    assert second["x"] > first["x"] + first["width"]
    for view in ("Heads", "Six steps", "Search", "Intervene", "Run"):
        go(page, view)
        assert page.locator(".pane").count() == 2


def test_mistakes_are_told_in_the_page(look: Look) -> None:
    page = look(state="#text=abcd")
    page.get_by_label("Text", exact=True).fill(" ")
    page.get_by_role("button", name="Look", exact=True).click()
    assert "nothing to read" in page.locator(".failure").inner_text()
    settled(page, lambda: page.evaluate(f"location.hash = 'text={'ab ' * 200}'"))
    assert "tokens" in page.locator(".failure").inner_text()
    settled(page, lambda: page.evaluate("location.hash = 'text=ab€'"))
    assert "vocabulary" in page.locator(".notice").inner_text()
    settled(
        page,
        lambda: page.evaluate(
            "location.hash = 'text=ab&do=nonsense&att=nobody&head=99&view=nowhere&token=x'"
        ),
    )
    assert page.locator(".frame").count() == 1


def test_what_is_typed_is_never_markup(look: Look) -> None:
    page = look(state="#text=abcd")
    hostile = "<img src=x onerror=document.title='bad'>"
    page.get_by_label("Text", exact=True).fill(hostile)
    settled(page, page.get_by_role("button", name="Look", exact=True).click)
    for view in ("Heads", "Six steps", "Search", "Intervene", "Words", "Run"):
        go(page, view)
    assert page.locator("img").count() == 0
    assert page.title() != "bad"


def test_everything_can_be_reached_by_keyboard(look: Look) -> None:
    page = look(state="#text=abcd")
    page.get_by_role("tab", name="Alignment").focus()
    for view in ("Heads", "Six steps", "Search", "Intervene"):
        settled(page, lambda: page.keyboard.press("ArrowRight"))
        assert page.evaluate("document.activeElement.textContent") == view
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, select, input, textarea')].filter(one =>"
        " !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length"
    )
    assert unnamed == 0


def test_dark_light_and_a_phone(look: Look) -> None:
    page = look(state="#text=abcd")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate(paper) != light
    page.get_by_role("button", name="Theme: dark").click()
    assert page.evaluate(paper) == light
    page.set_viewport_size({"width": 360, "height": 740})
    for view in ("Heads", "Six steps", "Search", "Intervene", "Words", "Probe", "Run"):
        go(page, view)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view


def test_the_file_works_from_disk_without_a_network(browser: Any, run_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "look.html"
    questions = [question_of("abcd"), question_of("fed")]
    file.write_text(self_contained([Inspected(run_folder)], questions, "kept"), encoding="utf-8")
    context = browser.new_context(offline=True)
    page, asked, complaints = context.new_page(), list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready]")
    for view, there in (
        *(("Heads", ".arcs path"), ("Six steps", ".steps tbody tr"), ("Search", ".tree .node")),
        *(
            ("Intervene", ".switches tbody tr"),
            ("Words", ".near tr"),
            ("Probe", ".nothing"),
            ("Run", ".chart"),
        ),
    ):
        go(page, view)
        assert page.locator(there).count() > 0, view
    go(page, "Alignment")
    settled(page, lambda: page.get_by_label("Text", exact=True).select_option("fed"))
    assert page.locator(".line").first.locator(".token").count() == 4
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert complaints == []
    context.close()
