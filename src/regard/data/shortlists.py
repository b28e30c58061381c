"""Which tokens an answer may consist of, told by the tokens of what is asked.

A target token is worth looking at if the pairs that were learned from put it beside one of the source's, or
if it is common anyway. Everything else need not be computed, at the price of a word that is missing now and
then.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from regard.core.errors import RunError
from regard.data.pair_batches import PairStores
from regard.data.tokenizers import Tokenizer
from regard.data.word_translations import Translations, learn_translations

BEST, COMMON = 40, 500
"""Target tokens for each source token, and for all of them."""


class Shortlist(NamedTuple):
    common: Int64[np.ndarray, "common"]
    """What may always be written, the most frequent first."""
    begins: Int64[np.ndarray, "source+1"]
    beside: Int64[np.ndarray, "entries"]
    """What else, for each source token from where it begins to where the next one does; the likeliest
    first."""

    def for_token(self, token: int) -> Int64[np.ndarray, "some"]:
        return self.beside[self.begins[token] : self.begins[token + 1]]

    def tensors(self) -> dict[str, Tensor]:
        """As a run folder keeps it."""
        return {
            name: torch.from_numpy(np.ascontiguousarray(values, dtype=np.int32))
            for name, values in self._asdict().items()
        }

    @classmethod
    def from_tensors(cls, stored: Mapping[str, Tensor], source: Tokenizer, target: Tokenizer) -> "Shortlist":
        """One that belongs to these vocabularies; another is refused."""
        if set(stored) == set(cls._fields):
            found = cls(**{name: values.numpy().astype(np.int64) for name, values in stored.items()})
            tokens = np.concatenate((found.common, found.beside))
            if len(found.begins) == source.size + 1 and tokens.min() >= 0 and tokens.max() < target.size:
                return found
        raise RunError("made for other vocabularies than this run's")


def learn_shortlist(
    pairs: PairStores, source: Tokenizer, target: Tokenizer, best: int = BEST, common: int = COMMON
) -> Shortlist:
    """From pairs of token ids. A source token that is in none of them may be copied."""
    translations = learn_translations(pairs.source, pairs.target, source.size, target.size)
    counts = np.bincount(pairs.target.values, minlength=target.size)
    frequent = np.argsort(-counts, kind="stable")[:common]
    frequent = frequent[counts[frequent] > 0]
    tokens, beside = _likeliest(translations, best)
    copied = _same_in_both(source, target)
    copied = copied[np.bincount(tokens, minlength=source.size)[copied[:, 0]] == 0]
    tokens, beside = np.concatenate((tokens, copied[:, 0])), np.concatenate((beside, copied[:, 1]))
    # Lists are put together for every batch anew: what is common anyway would only make that slower.
    order = np.argsort(tokens, kind="stable")
    order = order[~np.isin(beside[order], frequent)]
    begins = np.searchsorted(tokens[order], np.arange(source.size + 1))
    return Shortlist(frequent, begins, beside[order])


def _likeliest(found: Translations, best: int) -> tuple[np.ndarray, np.ndarray]:
    """Source tokens, and target tokens beside them."""
    order = np.lexsort((found.target, -found.share, found.source))
    source = found.source[order]
    kept = np.arange(len(source)) - np.searchsorted(source, source) < best
    return source[kept], found.target[order][kept]


def _same_in_both(source: Tokenizer, target: Tokenizer) -> Int64[np.ndarray, "tokens 2"]:
    """The numbers of tokens that both vocabularies have, by their names."""
    there = target.vocabulary()
    rows = sorted((number, there[name]) for name, number in source.vocabulary().items() if name in there)
    return np.array(rows, dtype=np.int64).reshape(-1, 2)
