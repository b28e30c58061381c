"""What people said about words: how alike two are, or which word is to a third as the second to the first.

Pairs: ``word word score`` a line, between tabs, commas or blanks; lines that begin with # are remarks, and a
header may say which column holds the score. Analogies: four words a line, under headings that begin with a
colon (Mikolov et al. 2013a, questions-words).
"""

import math
import re

from regard.core.errors import DataError
from regard.data.lines import Line, read_lines, shown

_SCORES = re.compile(r"score|human|mean|simlex|similarity|relatedness|rating|gold", re.IGNORECASE)
_NOT_SCORES = re.compile(r"assoc|conc|sd\b|sd\(", re.IGNORECASE)


def read_questions(path: str) -> list[tuple[str, ...]]:
    """(word, word, score) of every pair, or (heading, a, b, c, d) of every analogy."""
    name = shown(path)
    lines = [line for line in read_lines(path) if line.text.strip() and not line.text.startswith("#")]
    if not lines:
        raise DataError("there is no question here", file=name)
    if any(line.text.startswith(":") for line in lines):
        return _analogies(lines, name)
    return _pairs(lines, name)


def _analogies(lines: list[Line], name: str) -> list[tuple[str, ...]]:
    heading, found = "", list[tuple[str, ...]]()
    for number, text in lines:
        if text.startswith(":"):
            heading = text[1:].strip()
            continue
        words = text.split()
        if len(words) != 4:
            raise DataError(f"expected four words of an analogy, found {len(words)}", file=name, line=number)
        found.append((heading, *words))
    return found


def _pairs(lines: list[Line], name: str) -> list[tuple[str, ...]]:
    column, found = 2, list[tuple[str, ...]]()
    for place, (number, text) in enumerate(lines):
        cells = _cells(text)
        if place == 0 and _score_column(cells) is not None:
            column = _score_column(cells) or column
            continue
        if len(cells) <= column:
            raise DataError(
                f"expected two words and a score, found {len(cells)} values", file=name, line=number
            )
        if not _is_number(cells[column]):
            raise DataError(f"expected a score, found {cells[column]!r}", file=name, line=number)
        found.append((cells[0], cells[1], cells[column]))
    return found


def _score_column(cells: list[str]) -> int | None:
    """Where a header says the score is; None: this is no header."""
    if len(cells) < 3 or any(map(_is_number, cells[2:])):
        return None
    for number, cell in enumerate(cells):
        if _SCORES.search(cell) and not _NOT_SCORES.search(cell):
            return number
    return None


def _cells(text: str) -> list[str]:
    between = "\t" if "\t" in text else "," if "," in text else None
    return [cell.strip() for cell in text.split(between)]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
