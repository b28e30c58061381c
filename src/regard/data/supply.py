"""How training pairs are served: what a corpus read as a whole and one read in portions have in common."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from regard.data.origins import Pair
from regard.data.pair_batches import PairBatches
from regard.data.pair_cache import PairsReport
from regard.data.tokenizers import Tokenizer


class Supply(ABC):
    """Batches of training pairs, epoch by epoch."""

    @abstractmethod
    def epoch(self, number: int) -> PairBatches:
        """A pure function of the data, the spec, the seed and ``number``."""

    def close(self) -> None:  # noqa: B027  # most have nothing to end
        """End what is being prepared ahead of time."""


class Supplied(NamedTuple):
    """Training pairs and what goes with them."""

    supply: Supply
    tokenizers: tuple[Tokenizer, Tokenizer]
    valid: list[Pair]
    report: PairsReport
    fingerprint: str
    """Of the data and of the way it is served: going on with a run needs both to be the same."""
