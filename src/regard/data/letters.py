"""How tokens are spelled, for models that look at letters."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.tokenizers import Tokenizer
from regard.data.units import SPACE
from regard.parts.spelling import spelled

WHOLE_WORDS = ("word", "blank", "imported")
"""Units of text whose tokens are words, which have a spelling of their own."""


class Letters:
    """Of every token of a vocabulary; marks are spelled as nothing."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        marks = {mark for mark in tokenizer.marks if mark is not None} - {tokenizer.unknown}
        pieces = tokenizer.pieces(range(tokenizer.size))
        self._table = spelled(
            ["" if token in marks else piece.removeprefix(SPACE) for token, piece in enumerate(pieces)]
        )
        self._lengths = (self._table != 0).sum(1)

    def of(self, ids: Int[np.ndarray, "*rows"]) -> Int[Tensor, "*rows letters"]:
        """No longer than the longest word among them."""
        longest = int(self._lengths[ids].max()) if ids.size else 0
        return torch.from_numpy(self._table[ids][..., :longest])


def words_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """What each token of ``text`` is spelled as there: also those that the vocabulary does not know."""
    text = text.lower() if tokenizer.spec.lowercase else text
    return [text[begin:end] for begin, end in tokenizer.offsets(text)]
