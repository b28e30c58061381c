"""What a person calls a word, among the pieces of a vocabulary."""

import numpy as np

from regard.data.tokenizers import Tokenizer
from regard.data.units import CONTINUED, SPACE

_SPACES = (SPACE, "Ġ", " ")


def words_of(tokenizer: Tokenizer) -> dict[str, int]:
    """Every piece that is a whole word, and its id; of "▁the" and "the" the more frequent, which is first.

    Marks, and pieces that only go on with a word, are none.
    """
    found: dict[str, int] = {}
    for number, word in enumerate(names_of(tokenizer)):
        if word is not None:
            found.setdefault(word, number)
    return found


def canonical(tokenizer: Tokenizer) -> np.ndarray:
    """Of every piece the id under which its word is known: the same word with and without a space is one."""
    known, same = words_of(tokenizer), np.arange(tokenizer.size)
    for number, word in enumerate(names_of(tokenizer)):
        if word is not None:
            same[number] = known[word]
    return same


def names_of(tokenizer: Tokenizer) -> list[str | None]:
    """The word that each piece is, by id; None for those that are none."""
    names: list[str | None] = [None] * tokenizer.size
    marks = {mark for mark in tokenizer.marks if mark is not None}
    pieces = tokenizer.vocabulary()
    spaced = sum(piece.startswith(_SPACES) for piece in pieces) > 1
    whole = tokenizer.spec.unit in ("word", "blank", "character")
    for piece, number in pieces.items():
        if number in marks or number >= len(names):
            continue
        if piece.startswith(_SPACES) and len(piece) > 1:
            names[number] = tokenizer.pieces([number])[0].removeprefix(SPACE)
        elif whole or not (spaced or piece.startswith(CONTINUED)):
            names[number] = tokenizer.pieces([number])[0]
    return names
