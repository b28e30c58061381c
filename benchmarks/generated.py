"""Pairs of texts in any number, from a seed: a small grammar that says the same in two invented languages.

Lengths and word frequencies are like those of image captions, so that subwords, batches and padding are too.
"""

from pathlib import Path

import numpy as np

_WORDS = 9_000
_ONSETS = [
    "b",
    "d",
    "f",
    "g",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "z",
    "st",
    "tr",
    "br",
    "sch",
    "pl",
]
_VOWELS = ["a", "e", "i", "o", "u", "ei", "au", "oo"]
_CODAS = ["", "n", "r", "s", "t", "l", "m", "ng"]


def _lexicon(random: np.random.Generator) -> np.ndarray:
    """Words of one to four syllables; frequent ones are short."""
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        syllables = 1 + min(3, int(random.poisson(min(2.0, len(words) / 800))))
        word = "".join(random.choice(part) for _ in range(syllables) for part in (_ONSETS, _VOWELS, _CODAS))
        words.setdefault(word)
    return np.array(list(words))


def write_pairs(folder: Path, count: int, seed: int = 1, at_once: int = 100_000) -> tuple[Path, Path]:
    """Write ``count`` pairs as two files of lines; memory does not grow with ``count``."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    source_words, target_words = _Spelling(_lexicon(random)), _Spelling(_lexicon(random))
    frequency = 1.0 / np.arange(1, _WORDS + 1)
    cumulated = np.cumsum(frequency / frequency.sum())
    paths = folder / "generated.src", folder / "generated.tgt"
    with paths[0].open("wb") as source, paths[1].open("wb") as target:
        for begin in range(0, count, at_once):
            lengths = np.clip(random.normal(12, 4, size=min(at_once, count - begin)), 4, 35).astype(int)
            chosen = np.searchsorted(cumulated, random.random(int(lengths.sum())))
            source.write(source_words.lines(chosen, lengths))
            target.write(target_words.lines(chosen[_halves_swapped(lengths)], lengths))
    return paths


def _halves_swapped(lengths: np.ndarray) -> np.ndarray:
    """The other language puts the second half of a sentence first, and mirrors nothing else."""
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    inside = np.arange(len(starts)) - starts
    return starts + (inside + np.repeat(lengths // 2, lengths)) % np.repeat(lengths, lengths)


class _Spelling:
    """Writes sentences of numbered words without a Python loop, for corpora of millions."""

    def __init__(self, words: np.ndarray) -> None:
        spelled = [f"{word} ".encode() for word in words]
        self._letters = np.frombuffer(b"".join(spelled), dtype=np.uint8)
        self._sizes = np.array([len(word) for word in spelled])
        self._starts = np.cumsum(self._sizes) - self._sizes

    def lines(self, chosen: np.ndarray, lengths: np.ndarray) -> bytes:
        """Word after word, and a line end for the space after the last word of each sentence."""
        sizes = self._sizes[chosen]
        ends = np.cumsum(sizes)
        text = self._letters[np.arange(ends[-1]) + np.repeat(self._starts[chosen] - ends + sizes, sizes)]
        text[ends[np.cumsum(lengths) - 1] - 1] = ord("\n")
        return text.tobytes()
