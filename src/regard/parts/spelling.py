"""A word from its letters: convolutions over its bytes, the strongest answer of each filter counts.

Letters are bytes of UTF-8, so that no word of any language is unknown and no vocabulary is needed: 0 is
padding, 1 and 2 stand before and after a word, and byte b is b + 3 (Peters et al. 2018, in their code).
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.core.spec import Spec
from regard.parts.dropout import Dropout
from regard.parts.feedforward import ACTIVATIONS, initialise, type_of_activation
from regard.parts.filters import Filters

_BEFORE, _AFTER, _FIRST_BYTE = 1, 2, 3
LETTERS = 256 + _FIRST_BYTE
_LONGEST = 50
"""Letters of a word that are looked at, the marks around it counted."""


def spelled(words: Sequence[str], longest: int = _LONGEST) -> Int[np.ndarray, "words letters"]:
    """The letters of every word; a word too long is cut at its end."""
    rows = [
        [_BEFORE, *(byte + _FIRST_BYTE for byte in word.encode()[: longest - 2]), _AFTER] for word in words
    ]
    letters = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)
    for row, values in zip(letters, rows, strict=True):
        row[: len(values)] = values
    return letters


class SpellingSpec(Spec):
    """Ma and Hovy 2016 §2.1: one width of filter; Peters et al. 2018: seven, then two highway layers."""

    letter_width: int = Field(default=25, gt=0)
    filters: tuple[Filters, ...] = (Filters(width=3, count=30),)
    activation: type_of_activation = "tanh"
    highways: int = Field(default=0, ge=0)
    """Layers that let part of their input through (Srivastava et al. 2015)."""
    width: int | None = Field(default=None, gt=0)
    """Of what comes out, led there by a last layer; null: one value a filter."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of the letters' vectors."""

    @model_validator(mode="after")
    def _has_filters(self) -> "SpellingSpec":
        if not self.filters:
            raise ValueError("a word is read through filters, and there is none")
        return self

    @property
    def out(self) -> int:
        return self.width or sum(some.count for some in self.filters)

    def build(self) -> "Spelling":
        return Spelling(self)


class Spelling(nn.Module):
    def __init__(self, spec: SpellingSpec) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, spec.letter_width, padding_idx=0)
        nn.init.uniform_(
            self.letters.weight, -((3 / spec.letter_width) ** 0.5), (3 / spec.letter_width) ** 0.5
        )
        with torch.no_grad():
            self.letters.weight[0] = 0
        self.filters = nn.ModuleList(
            nn.Conv1d(spec.letter_width, some.count, some.width) for some in spec.filters
        )
        self.widest = max(some.width for some in spec.filters)
        self.activation, self.dropout = ACTIVATIONS[spec.activation], Dropout(spec.dropout)
        found = sum(some.count for some in spec.filters)
        self.highways = nn.ModuleList(Highway(found) for _ in range(spec.highways))
        self.lead = initialise(nn.Linear(found, spec.width)) if spec.width is not None else None

    def forward(self, letters: Int[Tensor, "*words letters"]) -> Float[Tensor, "*words width"]:
        """Each different word of a batch is read once: most occur often."""
        rows = letters.flatten(0, -2)
        different, where = torch.unique(rows, dim=0, return_inverse=True)
        y = self._read(different)
        return nn.functional.embedding(where, y).view(*letters.shape[:-1], -1)

    def _read(self, words: Int[Tensor, "words letters"]) -> Float[Tensor, "words width"]:
        # Every filter sees padding alone at least once, so that it means nothing how long other words are.
        words = nn.functional.pad(words, (self.widest - 1, self.widest))
        x = self.dropout(self.letters(words)).transpose(1, 2)
        y = torch.cat([self.activation(look(x)).amax(2) for look in self.filters], dim=1)
        for highway in self.highways:
            y = highway(y)
        return y if self.lead is None else self.lead(y)


class Highway(nn.Module):
    """t ⊙ relu(W x) + (1 − t) ⊙ x; to begin with most is let through (Srivastava et al. 2015 eq. 3)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = initialise(nn.Linear(width, 2 * width))
        with torch.no_grad():
            self.linear.bias[width:] = -1.0

    def forward(self, x: Float[Tensor, "rows width"]) -> Float[Tensor, "rows width"]:
        new, gate = self.linear(x).chunk(2, dim=-1)
        return torch.lerp(x, torch.relu(new), torch.sigmoid(gate))
