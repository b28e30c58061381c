"""Pieces of text as a reader can see them: how wide they stand in a terminal, and what stands for the unseen.

Tokens are arbitrary text. In a terminal a control character could move the cursor, so none is let through.
"""

import unicodedata

ELLIPSIS = "…"
_LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT MARK}"
_JOINER = "\N{ZERO WIDTH JOINER}"
_NAMED = {"\n": "⏎", "\r": "⏎", "\u2028": "⏎", "\u2029": "⏎", "\t": "⇥"}


def visible(piece: str) -> str:
    """``piece`` with something to see in place of white space and control characters."""
    if not piece:
        return "∅"
    if piece.isspace():
        return "".join(_NAMED.get(character, "␣") for character in piece)
    return "".join(_shown(character) for character in piece)


def _shown(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    category = unicodedata.category(character)
    if category == "Cf":  # keeps emoji together; direction marks and the like would act outside the piece
        return character if character == _JOINER else ""
    return "\N{REPLACEMENT CHARACTER}" if category in ("Cc", "Cs", "Cn", "Co") else character


def clusters(piece: str) -> list[str]:
    """What stands in one place: a character with the marks that go on top of it."""
    found: list[str] = []
    for character in piece:
        joined = bool(found) and found[-1].endswith(_JOINER)
        if _width_of(character) > 0 and not joined:
            found.append(character)
        elif found:
            found[-1] += character
        else:
            found.append("\N{DOTTED CIRCLE}" + character)
    return found


def width(text: str) -> int:
    """Terminal columns that ``text`` takes."""
    return sum(_width_of(cluster[0]) for cluster in clusters(text))


def _width_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def cut(text: str, columns: int) -> str:
    """``text`` in at most ``columns`` terminal columns, … in place of what was cut."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for cluster in clusters(text):
        if used + width(cluster) > columns - 1:
            break
        kept, used = kept + cluster, used + width(cluster)
    return kept + ELLIPSIS[:columns]


def right(text: str, columns: int) -> str:
    """``text`` at the right end of exactly ``columns`` terminal columns, cut where it must be."""
    kept = cut(text, columns)
    return " " * (columns - width(kept)) + closed(kept)


def direction(text: str) -> str:
    """ "rtl" or "ltr": that of the first letter which has one."""
    for character in text:
        match unicodedata.bidirectional(character):
            case "R" | "AL":
                return "rtl"
            case "L":
                return "ltr"
    return "ltr"


def closed(text: str) -> str:
    """Text written from right to left is kept from turning its neighbours around."""
    turns = any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)
    return text + _LEFT_TO_RIGHT if turns else text
