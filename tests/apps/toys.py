"""Every recipe small enough to train in a second, and data that can be learned in one."""

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from regard.recipes.catalogue import recipe
from regard.recipes.system import SystemSpec

SMALL: dict[str, Any] = {
    "width": 24,
    "hidden": 32,
    "readout": 24,
    "heads": 2,
    "repeat": 2,
    "batch_tokens": 300,
    "longest": 64,
    "window": 12,
    "context": 5,
    "rows": 8,
    "radius": 20,
    "table": 16,
    "held": 32,
    "filters": [{"width": 3, "count": 8}],
    "longest_question": 16,
}

_STEPS = (
    "training.schedule.warmup=10",
    "training.validation.every=10",
    "training.checkpoints.steps=5",
)

LEARNED = (
    "model.encoder.embedding.positions.kind=learned",
    "model.encoder.stack.blocks.0.mixers.0.positions.kind=none",
)
"""Positions of a reader as BERT had them at first: learned, and added to the input."""

UNCOMPARED = ("model.relation=null", "data.relation=null", "data.short=0")
"""A reader that only guesses hidden words, not whether passages belong together."""


class Kind(NamedTuple):
    """How systems over one kind of data are made small, and what they learn from."""

    peak: float
    settings: tuple[str, ...]
    examples: Callable[[int, int], list[Any]]
    questions: Callable[[], list[str]]


def toy(name: str, *settings: str) -> SystemSpec:
    """The recipe with every size made small; dropout stays, so that randomness is tested too."""
    small = SystemSpec.from_dict(_shrink(recipe(name).to_dict()))
    kind = kind_of(small)
    peak = f"training.schedule.peak={kind.peak}"
    learning = (*_STEPS, peak) if small.training.kind() == "gradient" else ()
    return small.override([*learning, *kind.settings, *settings])


def _shrink(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: SMALL[key] if key in SMALL and type(item) is type(SMALL[key]) else _shrink(item)
            for key, item in value.items()
        }
    return [_shrink(item) for item in value] if isinstance(value, list) else value


def pairs(count: int, seed: int = 0, longest: int = 6) -> list[tuple[str, str]]:
    """Words and their reverse, over a few letters."""
    rng = random.Random(seed)
    words = ("".join(rng.choices("abcdef", k=rng.randint(1, longest))) for _ in range(count))
    return [(word, word[::-1]) for word in words]


def texts(count: int, seed: int = 0) -> list[str]:
    """Documents in which what comes next can be known from what came a little before."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(("abc", "defdef", "ghij")) for _ in range(8)) for _ in range(count)]


def labelled(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """A word, and its first letter."""
    return [(word, word[0]) for word, _ in pairs(count, seed)]


def labelled_pairs(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Two words, and whether they begin alike."""
    words = [word for word, _ in pairs(2 * count, seed)]
    both = list(zip(words[::2], words[1::2], strict=True))
    return [(one, other, str(int(one[0] == other[0]))) for one, other in both]


def rated_pairs(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Two words, and how many letters both have."""
    return [(one, other, str(len(one) + len(other))) for one, other, _ in labelled_pairs(count, seed)]


def tagged(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Words, of which those that come after an x and begin with a or b are names."""
    rng, rows = random.Random(seed), list[tuple[str, str]]()
    for _ in range(count):
        words = rng.choices(("x", "aa", "ab", "ba", "cc", "dd"), k=rng.randint(1, 9))
        tags = ["O"] * len(words)
        for place in range(1, len(words)):
            if words[place][0] in "ab":
                begins = words[place - 1] == "x"
                goes_on = tags[place - 1] != "O"
                tags[place] = "B-N" if begins else "I-N" if goes_on else "O"
        rows.append((" ".join(words), " ".join(tags)))
    return rows


def chosen(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """A word, then two or three others, of which the one that begins with a is right."""
    rng, rows = random.Random(seed), list[tuple[str, str]]()
    for _ in range(count):
        given, *words = (word.replace("a", "c") for word, _ in pairs(rng.randint(3, 4), rng.randrange(9999)))
        right = rng.randrange(len(words))
        words[right] = "a" + words[right]
        rows.append(("\t".join((given, *words)), str(right)))
    return rows


def quoted(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """A letter, and a text in which some letters follow it: those are the answer."""
    rng, rows = random.Random(seed), list[tuple[str, str]]()
    for _ in range(count):
        words = ["".join(rng.choices("abc", k=rng.randint(1, 3))) for _ in range(rng.randint(3, 6))]
        place = rng.randrange(len(words))
        words[place] = "xy" if rng.random() < 0.5 else "xyz"
        rows.append((f"x\t{' '.join(words)}", words[place]))
    return rows


_TEXT_TOKENIZER = "data.tokenizer={unit: character, size: 100}"
_LABELLED = (_TEXT_TOKENIZER, "evaluation.examples=8")
KINDS = {
    "pairs": Kind(
        0.005,
        (
            "data.source={unit: character, size: 100}",
            "data.target={unit: character, size: 100}",
            "evaluation.metric=exact",
            "evaluation.examples=8",
        ),
        pairs,
        lambda: [source for source, _ in pairs(24, seed=1)],
    ),
    "text": Kind(
        0.02,
        (_TEXT_TOKENIZER, "search.longest_extra=15"),
        texts,
        lambda: ["", "a", "abc d", "ghij defde", "abc defdef ghij a", "d"],
    ),
    "two-sided text": Kind(
        0.02,
        ("data.tokenizer={unit: blank, size: 100}", "model.encoder.stack.blocks.0.repeat=1"),
        texts,
        lambda: [
            "___",
            "abc ___",
            "___ defdef",
            "ghij ___ defdef abc",
            "unheard of ___ ghij",
            "abc abc ___ abc",
        ],
    ),
    "passages": Kind(
        0.01,
        ("data.tokenizer={unit: character, size: 100, hides: true}", "evaluation.examples=8"),
        texts,
        lambda: ["a___c", "abc ___", "___bc defdef", "ghij de___def ab[MASK] ghij", "abc defdef gh___j"],
    ),
    "text with gaps": Kind(
        0.02,
        (
            "data.tokenizer={unit: blank, size: 100, hides: true}",
            "model.encoder.stack.blocks.0.repeat=1",
        ),
        texts,
        lambda: ["abc ___", "___ defdef", "ghij ___ abc [MASK] ghij", "unheard of ___ ghij", "abc ___ abc"],
    ),
    "words": Kind(
        0.1,
        ("data.tokenizer={unit: word, size: 100}", "data.sample=0", "data.radius=2", "data.group=4"),
        texts,
        lambda: ["abc", "abc + ghij", "defdef : abc :: ghij : ?", "ghij"],
    ),
    "doubtful passages": Kind(
        0.01,
        ("data.tokenizer={unit: character, size: 100, hides: true}",),
        texts,
        lambda: ["a", "abc xyz", "defdef defd3f", "ghij", "abc defdef ghij a b c"],
    ),
    "labelled": Kind(0.02, _LABELLED, labelled, lambda: [text for text, _ in labelled(24, seed=1)]),
    "tagged": Kind(
        0.02,
        ("data.tokenizer={unit: blank, size: 100}", "evaluation.examples=8"),
        tagged,
        lambda: [words for words, _ in tagged(24, seed=1)],
    ),
    "quotes": Kind(
        0.02,
        (*_LABELLED, "data.longest_question=4", "data.longest=20", "data.stride=6"),
        quoted,
        lambda: [text for text, _ in quoted(24, seed=1)],
    ),
    "choices": Kind(0.02, _LABELLED, chosen, lambda: [text for text, _ in chosen(24, seed=1)]),
    "labelled pairs": Kind(
        0.02,
        _LABELLED,
        labelled_pairs,
        lambda: [f"{one}\t{other}" for one, other, _ in labelled_pairs(24, seed=1)],
    ),
    "rated pairs": Kind(
        0.02,
        _LABELLED,
        rated_pairs,
        lambda: [f"{one}\t{other}" for one, other, _ in rated_pairs(24, seed=1)],
    ),
}


def kind_of(spec: SystemSpec) -> Kind:
    kind = spec.data.kind() or ""
    if kind == "labelled" and spec.data.to_dict()["texts"] == 2:
        kind = "rated pairs" if spec.data.to_dict()["wanted"] == "number" else "labelled pairs"
    if kind == "text" and spec.task.kind() == "filling":
        kind = "text with gaps"
    kind = {"two_sided": "two-sided text", "detecting": "doubtful passages"}.get(spec.task.kind() or "", kind)
    return KINDS[kind]


def examples(name: str, count: int, seed: int = 0) -> list[Any]:
    """What a recipe is trained on."""
    return kind_of(recipe(name)).examples(count, seed)


def questions(name: str) -> list[str]:
    """What it can be asked."""
    return kind_of(recipe(name)).questions()
