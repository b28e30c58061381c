"""An alignment drawn in a terminal, in colour or without.

How much of a cell is inked (░▒▓█) is how large its weight is: that reads the same on dark and on light
backgrounds, and in a log file.
"""

from collections.abc import Sequence

from regard.core.errors import UsageError
from regard.inspection import glyphs
from regard.inspection.alignment import Matrix

SHADES = " ░▒▓█"
_TALLEST = 14
"""Lines for the names of columns."""
_HUE, _PLAIN = "\x1b[38;2;74;134;214m", "\x1b[0m"


def draw_alignment(
    matrix: Matrix, rows: Sequence[str], columns: Sequence[str], width: int = 100, colour: bool = False
) -> str:
    """``matrix`` as a heat map, no line wider than ``width``; shades are relative to its largest weight.

    Cells are two characters wide, or one where only that fits. Columns that still do not fit are left out,
    and a line says so.
    """
    if matrix.shape != (len(rows), len(columns)):
        raise UsageError(f"{len(rows)} row and {len(columns)} column names for weights of {matrix.shape}")
    names, heads = [glyphs.visible(row) for row in rows], [glyphs.visible(column) for column in columns]
    margin = min(max(map(glyphs.width, names), default=0), max(1, width // 3))
    room = max(2, width - margin - 1)
    cell = _cell_width(heads, room)
    shown = min(len(heads), room // cell)
    largest = float(matrix.max(initial=0.0))

    lines = [" " * (margin + 1) + line for line in _standing(heads[:shown], cell)]
    for name, weights in zip(names, matrix[:, :shown].tolist(), strict=True):
        cells = "".join(_shade(weight, largest) * cell for weight in weights).rstrip()
        inked = f"{_HUE}{cells}{_PLAIN}" if colour and cells else cells
        lines.append(f"{glyphs.right(name, margin)} {inked}".rstrip())
    if shown < len(heads):
        lines.append(glyphs.cut(f"({len(heads) - shown} of {len(heads)} columns left out)", width))
    lines.append(glyphs.cut(_legend(largest), width))
    return "\n".join(lines)


def _cell_width(heads: Sequence[str], room: int) -> int:
    wide = any(glyphs.width(cluster) > 1 for head in heads for cluster in glyphs.clusters(head))
    return 2 if wide or 2 * len(heads) <= room else 1


def _standing(heads: Sequence[str], cell: int) -> list[str]:
    """Names of columns, written downwards, their ends on one line."""
    letters = [glyphs.clusters(head) for head in heads]
    letters = [[*word[: _TALLEST - 1], glyphs.ELLIPSIS] if len(word) > _TALLEST else word for word in letters]
    height = max(map(len, letters), default=0)
    lines = []
    for line in range(height):
        places = [word[line - height] if line >= height - len(word) else "" for word in letters]
        padded = [glyphs.closed(place) + " " * (cell - glyphs.width(place)) for place in places]
        lines.append("".join(padded).rstrip())
    return lines


def _shade(weight: float, largest: float) -> str:
    level = round(weight / largest * (len(SHADES) - 1)) if largest > 0 else 0
    return SHADES[level]


def _legend(largest: float) -> str:
    steps = len(SHADES) - 1
    return "  ".join(f"{SHADES[level]} {largest * level / steps:.2f}" for level in range(1, len(SHADES)))
