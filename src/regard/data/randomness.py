"""Random numbers that are functions of where they are used, not of what was drawn before."""

import math

import numpy as np

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def keyed(*key: int) -> np.random.Generator:
    """A generator for this key alone (Philox, Salmon et al. 2011)."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([part & _MASK for part in key])))


def mixed(value: int) -> int:
    """The finalizer of SplitMix64 (Steele et al. 2014): every bit of the result hangs on every bit given."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class Drops:
    """An endless stream of booleans, True with probability ``share``, that depends on its key only.

    Not the booleans but the gaps between True values are drawn (they are geometric), from SplitMix64 in plain
    Python: a line needs few of them, and setting up one of numpy's generators would cost more than the rest.
    """

    __slots__ = ("_scale", "_state", "gap")

    def __init__(self, share: float, *key: int) -> None:
        # log(u) / log(1 - share), rounded down, is geometric.
        self._scale = 1.0 / math.log1p(-share) if 0.0 < share < 1.0 else -0.0
        self._state = 0
        for part in key:
            self._state = mixed((self._state + _GOLDEN + (part & _MASK)) & _MASK)
        self.gap: float = self.next_gap() if share > 0.0 else math.inf

    def next_gap(self) -> int:
        """Draw how many False values come before the next True."""
        self._state = (self._state + _GOLDEN) & _MASK
        uniform = (mixed(self._state) >> 11) * 2.0**-53
        return int(math.log1p(-uniform) * self._scale)

    def __iter__(self) -> "Drops":
        return self

    def __next__(self) -> bool:
        if self.gap:
            self.gap -= 1
            return False
        self.gap = self.next_gap()
        return True
