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
    source_words, target_words = _lexicon(random), _lexicon(random)
    frequency = 1.0 / np.arange(1, _WORDS + 1)
    cumulated = np.cumsum(frequency / frequency.sum())
    paths = folder / "generated.src", folder / "generated.tgt"
    with paths[0].open("w", encoding="utf-8") as source, paths[1].open("w", encoding="utf-8") as target:
        for begin in range(0, count, at_once):
            lengths = np.clip(random.normal(12, 4, size=min(at_once, count - begin)), 4, 35).astype(int)
            chosen = np.searchsorted(cumulated, random.random(int(lengths.sum())))
            ends = np.cumsum(lengths)
            for file, words, turn in ((source, source_words, 1), (target, target_words, -1)):
                # The other language puts the second half of a sentence first, and mirrors nothing else.
                text = words[chosen]
                lines = (_arranged(text[end - n : end], turn) for end, n in zip(ends, lengths, strict=True))
                file.write("\n".join(map(" ".join, lines)) + "\n")
    return paths


def _arranged(words: np.ndarray, turn: int) -> list[str]:
    half = len(words) // 2
    order = words if turn > 0 else np.concatenate((words[half:], words[:half]))
    return [str(word) for word in order]
