"""Every recipe small enough to train in a second, and data that can be learned in one."""

import random
from collections.abc import Mapping
from typing import Any

from regard.recipes.catalogue import recipe
from regard.recipes.system import SystemSpec

SMALL = {
    "width": 24,
    "hidden": 32,
    "readout": 24,
    "heads": 2,
    "repeat": 2,
    "batch_tokens": 300,
    "longest": 64,
    "window": 12,
    "context": 6,
    "rows": 8,
    "radius": 20,
}

_STEPS = (
    "training.schedule.warmup=10",
    "training.validation.every=10",
    "training.checkpoints.steps=5",
)
_PEAKS = {("source", "target"): 0.005, ("text",): 0.02}
_DATA = {
    ("source", "target"): (
        "data.source={unit: character, size: 100}",
        "data.target={unit: character, size: 100}",
        "evaluation.metric=exact",
        "evaluation.examples=8",
    ),
    ("text",): (
        "data.tokenizer={unit: character, size: 100}",
        "search.longest_extra=15",
    ),
}


def toy(name: str, *settings: str) -> SystemSpec:
    """The recipe with every size made small; dropout stays, so that randomness is tested too."""
    small = SystemSpec.from_dict(_shrink(recipe(name).to_dict()))
    peak = f"training.schedule.peak={_PEAKS[small.data.fields]}"
    learning = (*_STEPS, peak) if small.training.kind() == "gradient" else ()
    return small.override([*learning, *_DATA[small.data.fields], *settings])


def _shrink(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: SMALL[key] if key in SMALL and isinstance(item, int) else _shrink(item)
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


def examples(name: str, count: int, seed: int = 0) -> list[Any]:
    """What a recipe is trained on."""
    return pairs(count, seed) if len(recipe(name).data.fields) == 2 else texts(count, seed)


def questions(name: str) -> list[str]:
    """What it can be asked."""
    if len(recipe(name).data.fields) == 2:
        return [source for source, _ in pairs(24, seed=1)]
    return ["", "a", "abc d", "ghij defde", "abc defdef ghij a", "d"]
