"""Every token a search went on with, each pointing back at the one before it.

A hypothesis is then a single number, its last node; rows that die or finish cost nothing.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Trellis:
    """Nodes 0 … sentences-1 are the begins of the sentences."""

    def __init__(self, sentences: int) -> None:
        self.size = sentences
        self._layers: list[tuple[Tensor, Tensor, Tensor]] = []
        self._begins = sentences

    def grow(
        self,
        parents: Int[Tensor, "*shape"],
        tokens: Int[Tensor, "*shape"],
        log_probs: Float[Tensor, "*shape"],
    ) -> Int[Tensor, "*shape"]:
        """Add one node after each parent; get the numbers of the new nodes."""
        self._layers.append((parents.flatten(), tokens.flatten(), log_probs.flatten()))
        nodes = torch.arange(self.size, self.size + parents.numel(), device=parents.device)
        self.size += parents.numel()
        return nodes.view(parents.shape)

    def read(self) -> "Paths":
        """Everything at once, for following back pointers in Python."""
        begins = self._begins
        if not self._layers:
            return Paths(begins, [], [], [])
        parents, tokens, log_probs = (
            torch.cat(column).tolist() for column in zip(*self._layers, strict=True)
        )
        return Paths(begins, parents, tokens, log_probs)


class Paths:
    def __init__(self, begins: int, parents: list[int], tokens: list[int], log_probs: list[float]) -> None:
        self._begins = begins
        self._parents, self._tokens, self._log_probs = parents, tokens, log_probs

    def to(self, node: int) -> tuple[list[int], list[float]]:
        """Tokens from the begin to ``node`` and the log-probability of each."""
        tokens: list[int] = []
        log_probs: list[float] = []
        while (at := node - self._begins) >= 0:
            tokens.append(self._tokens[at])
            log_probs.append(self._log_probs[at])
            node = self._parents[at]
        return tokens[::-1], log_probs[::-1]
