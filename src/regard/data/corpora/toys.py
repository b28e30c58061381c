"""Tasks with an exact answer, for system tests: what a model must learn in a minute."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from regard.data.randomness import keyed

Pair: TypeAlias = tuple[str, str]
Toy: TypeAlias = Literal["copy", "reverse", "sort"]

ALPHABET = "abcdefghij"
SHORTEST, LONGEST = 3, 10

ANSWERS: dict[str, Callable[[Sequence[str]], Sequence[str]]] = {
    "copy": lambda symbols: symbols,
    "reverse": lambda symbols: symbols[::-1],
    "sort": sorted,
}


def toy(task: Toy, count: int, seed: int = 0, alphabet: str = ALPHABET, longest: int = LONGEST) -> list[Pair]:
    """``count`` different sequences of letters between spaces, and what the task makes of them."""
    random = keyed(seed, count, longest)
    seen: dict[str, Pair] = {}
    while len(seen) < count:
        length = int(random.integers(SHORTEST, longest + 1))
        symbols = [alphabet[i] for i in random.integers(len(alphabet), size=length).tolist()]
        source = " ".join(symbols)
        seen.setdefault(source, (source, " ".join(ANSWERS[task](symbols))))
    return list(seen.values())
