"""Does a vector know in which sense a word is used? Vectors of words alone beside vectors of words in place.

    python -m benchmarks.word_senses --words RUN --readers RUN … --senses coarsewsd20 --pairs wic

``--words`` is a run with one vector a word (word2vec, or an imported file), ``--readers`` are runs that read.

Senses (CoarseWSD-20, Loureiro et al. 2021): the sense whose centroid over the training sentences is nearest
by cosine; where all are equally near, the most frequent one. Pairs (WiC, Pilehvar and Camacho-Collados 2019):
the same sense if the cosine is above a threshold, which is chosen on the validation part.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import results
from benchmarks.arena import say
from regard.apps.session import Run, load
from regard.data.words import words_of
from regard.interop.word_vectors import table_of
from regard.parts.pooling import SummingUpSpec

Vectors = Callable[[Sequence["Place"]], np.ndarray]


class Place(NamedTuple):
    """A word of a tokenised sentence."""

    sentence: str
    number: int

    @property
    def span(self) -> tuple[int, int]:
        words = self.sentence.split(" ")
        begin = sum(len(word) + 1 for word in words[: self.number])
        return begin, begin + len(words[self.number])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--readers", type=Path, nargs="*", default=[])
    parser.add_argument("--senses", type=Path, help="folder of CoarseWSD-20")
    parser.add_argument("--pairs", type=Path, help="folder of WiC")
    parser.add_argument(
        "--most", type=int, help="at most so many training sentences of a sense, test of a word"
    )
    parser.add_argument("--layer", type=int, default=-1, help="of the readers")
    asked = parser.parse_args()
    fixed = load(asked.words)
    ways: dict[str, Vectors] = {
        f"{asked.words.name}, the word": lambda places: of_words(fixed, places),
        f"{asked.words.name}, mean of the sentence": lambda places: of_sentences(fixed, places),
    }
    for path in asked.readers:
        ways[f"{path.name}, the word in place"] = in_place(load(path), asked.layer)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for name, vectors in ways.items():
        if asked.senses is not None:
            found[name] |= judged_senses(asked.senses, vectors, asked.most)
        if asked.pairs is not None:
            found[name] |= judged_pairs(asked.pairs, vectors)
        say(f"{name}: {json.dumps(found[name])}")
    header = ["", *next(iter(found.values()))]
    rows = [[name, *(f"{value:.1%}" for value in scores.values())] for name, scores in found.items()]
    print(results.table(header, rows), flush=True)


# ---------------------------------------------------------------- vectors


def of_words(run: Run, places: Sequence[Place]) -> np.ndarray:
    """The one vector that each word has, whatever stands around it; zeros if it has none."""
    table, number = _table(run)
    return np.stack([_vector(table, number, place.sentence.split(" ")[place.number]) for place in places])


def of_sentences(run: Run, places: Sequence[Place]) -> np.ndarray:
    table, number = _table(run)
    return np.stack(
        [
            np.mean([_vector(table, number, word) for word in place.sentence.split(" ")], axis=0)
            for place in places
        ]
    )


def _table(run: Run) -> tuple[np.ndarray, dict[str, int]]:
    return table_of(run.model, run.spec.model, "text").weight.detach().numpy(), words_of(run.lexicon["text"])


def _vector(table: np.ndarray, number: dict[str, int], word: str) -> np.ndarray:
    found = number.get(word, number.get(word.lower()))
    return np.zeros(table.shape[1], table.dtype) if found is None else table[found]


def in_place(run: Run, layer: int) -> Vectors:
    def vectors(places: Sequence[Place]) -> np.ndarray:
        rows = []
        for begin in range(0, len(places), 512):
            some = places[begin : begin + 512]
            summing = SummingUpSpec(layer=layer)
            words = run.embedder().words([place.sentence for place in some], summing, truncate=True)
            for place, own in zip(some, words, strict=True):
                first, last = place.span
                here = [word.vector for word in own if word.begin < last and word.end > first]
                # A word beyond what the model can read: the last it has read stands for it.
                rows.append(np.mean(here or [own[-1].vector], axis=0))
        return np.stack(rows)

    return vectors


# ---------------------------------------------------------------- questions


def judged_senses(folder: Path, vectors: Vectors, most: int | None) -> dict[str, float]:
    """Share of the test sentences of all words, and the mean over words."""
    train, test = (_by_word(folder / f"{part}.tsv") for part in ("train", "test"))
    right, total, shares = 0, 0, list[float]()
    for word, known in train.items():
        kept = _some_of_each(known, most)
        asked = test[word][:: max(1, len(test[word]) // most) if most else 1][:most]
        senses = sorted({sense for sense, _ in kept}, key=lambda s: -sum(one == s for one, _ in known))
        own = _unit(vectors([place for _, place in kept]))
        labels = np.array([senses.index(sense) for sense, _ in kept])
        centroids = _unit(np.stack([own[labels == label].mean(0) for label in range(len(senses))]))
        near = _unit(vectors([place for _, place in asked])) @ centroids.T
        # The first of equals is the most frequent; what rounding makes of equals is nothing.
        guessed = near.round(5).argmax(1)
        hits = sum(senses[guess] == sense for guess, (sense, _) in zip(guessed, asked, strict=True))
        right, total = right + hits, total + len(asked)
        shares.append(hits / len(asked))
    return {"CoarseWSD-20": right / total, "mean over words": float(np.mean(shares))}


def judged_pairs(folder: Path, vectors: Vectors) -> dict[str, float]:
    def cosines(part: str) -> tuple[np.ndarray, np.ndarray]:
        rows = [line.split("\t") for line in _lines(folder / f"{part}.tsv")]
        one, other = (
            _unit(vectors([Place(row[4 + side], int(row[3].split("-")[side])) for row in rows]))
            for side in (0, 1)
        )
        return (one * other).sum(1), np.array([row[0] == "T" for row in rows])

    judged, same = cosines("valid")
    threshold = max(np.unique(judged), key=lambda value: ((judged >= value) == same).mean())
    asked, wanted = cosines("test")
    return {"WiC": float(((asked >= threshold) == wanted).mean())}


def _by_word(path: Path) -> dict[str, list[tuple[str, Place]]]:
    found: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    for line in _lines(path):
        word, _, sense, place, sentence = line.split("\t")
        found[word].append((sense, Place(sentence, int(place))))
    return found


def _some_of_each(known: list[tuple[str, Place]], most: int | None) -> list[tuple[str, Place]]:
    seen: dict[str, int] = defaultdict(int)
    kept = []
    for sense, place in known:
        seen[sense] += 1
        if most is None or seen[sense] <= most:
            kept.append((sense, place))
    return kept


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def _unit(x: np.ndarray) -> np.ndarray:
    unit: np.ndarray = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)
    return unit


if __name__ == "__main__":
    main()
