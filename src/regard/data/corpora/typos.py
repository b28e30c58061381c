"""Small slips of the fingers, in letters only."""

import re

import numpy as np

_LONG_WORD = re.compile(r"[^\W\d_]{5,}")


def with_typo(text: str, random: np.random.Generator) -> str:
    """One letter of a word of at least five dropped, doubled or swapped with the next; never the first."""
    words = list(_LONG_WORD.finditer(text))
    if not words:
        return text
    word = words[int(random.integers(len(words)))]
    place = int(random.integers(word.start() + 1, word.end() - 1))
    letter, following = text[place], text[place + 1]
    changed = (following, letter * 2 + following, following + letter)[int(random.integers(3))]
    return text[:place] + changed + text[place + 2 :]
