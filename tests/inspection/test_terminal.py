import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import UsageError
from regard.inspection import glyphs
from regard.inspection.terminal import draw_alignment

PIECES = st.text(max_size=9) | st.sampled_from(
    [
        "⟨end⟩",
        "日本",
        "שלום",
        "مرحبا",
        "e\u0301",
        "\u0301",
        "\x1b[31m",
        "\n",
        " ",
        "",
        "👩\u200d👩\u200d👧",
        "▁x",
    ]
)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@given(
    st.lists(PIECES, min_size=1, max_size=7), st.lists(PIECES, min_size=1, max_size=40), st.integers(12, 90)
)
def test_no_line_is_wider_than_asked_and_nothing_moves_the_cursor(
    rows: list[str], columns: list[str], width: int
) -> None:
    matrix = np.random.default_rng(0).random((len(rows), len(columns))).astype(np.float32)
    plain = draw_alignment(matrix, rows, columns, width)
    assert all(glyphs.width(line) <= width for line in plain.split("\n"))
    assert not any(unicodedata.category(character) == "Cc" for character in plain.replace("\n", ""))
    coloured = draw_alignment(matrix, rows, columns, width, colour=True)
    assert COLOUR.sub("", coloured) == plain


def test_cells_stand_under_the_names_of_their_columns() -> None:
    matrix = np.array([[0, 0.8, 0], [0.4, 0, 0.8]], np.float32)
    assert draw_alignment(matrix, ["x", "yy"], ["ab", "日", "c"]).split("\n") == [
        "   a",
        "   b 日c",
        " x   ██",
        "yy ▒▒  ██",
        "░ 0.20  ▒ 0.40  ▓ 0.60  █ 0.80",
    ]


def test_narrow_cells_before_left_out_columns() -> None:
    matrix = np.ones((1, 20), np.float32)
    names = list("abcdefghijklmnopqrst")
    assert draw_alignment(matrix, ["x"], names, width=42).split("\n")[1] == "x " + "█" * 40
    assert draw_alignment(matrix, ["x"], names, width=41).split("\n")[1] == "x " + "█" * 20
    narrow = draw_alignment(matrix, ["x"], names, width=21).split("\n")
    assert narrow[:3] == ["  abcdefghijklmnopqrs", "x " + "█" * 19, "(1 of 20 columns lef…"]


def test_wide_letters_keep_wide_cells() -> None:
    lines = draw_alignment(np.ones((1, 9), np.float32), ["x"], list("一二三四五六七八九"), width=13).split(
        "\n"
    )
    assert lines[:3] == ["  一二三四五", "x " + "█" * 10, "(4 of 9 colu…"]


def test_long_names_are_cut() -> None:
    lines = draw_alignment(np.ones((1, 1), np.float32), ["r" * 50], ["c" * 50], width=30).split("\n")
    assert [line.strip() for line in lines[:14]] == ["c"] * 13 + ["…"]
    assert lines[14] == "r" * 9 + "… ██"


def test_marks_stay_on_their_letters() -> None:
    assert glyphs.clusters("e\u0301x") == ["e\u0301", "x"]
    assert glyphs.clusters("\u0301") == ["\N{DOTTED CIRCLE}\u0301"]
    assert glyphs.clusters("👩\u200d👧") == ["👩\u200d👧"]
    assert (glyphs.width("日本"), glyphs.width("e\u0301x"), glyphs.width("👩\u200d👧")) == (4, 2, 2)


def test_the_unseen_is_made_visible() -> None:
    assert [glyphs.visible(piece) for piece in ("", " ", "\n", "\t", "a b", "\x1b[2J", "a\u202eb")] == [
        "∅", "␣", "⏎", "⇥", "a b", "\N{REPLACEMENT CHARACTER}[2J", "ab",
    ]  # fmt: skip


def test_right_to_left_names_do_not_turn_the_cells() -> None:
    line = draw_alignment(np.ones((1, 1), np.float32), ["שלום"], ["x"]).split("\n")[1]
    assert line == "שלום\N{LEFT-TO-RIGHT MARK} ██"


def test_names_must_fit_the_matrix() -> None:
    with pytest.raises(UsageError, match=r"1 row and 2 column names for weights of \(2, 2\)"):
        draw_alignment(np.ones((2, 2), np.float32), ["a"], ["b", "c"])
