"""Models without a network: step functions whose every probability is known."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.state import State
from regard.search.step import Step

Answer = tuple[Tensor, State]


def markov(table: Float[Tensor, "vocabulary vocabulary"]) -> Step:
    """The next token depends on the last one only; ``table[i, j]`` is log P(j after i)."""

    def step(tokens: Tensor, state: State) -> Answer:
        return table[tokens], state

    return step


class Tree:
    """The next token depends on the whole history: a random distribution at (nearly) every node.

    The state of a row is a number for its history, so a search that mixes up rows gets other numbers.
    A share of the continuations can be made impossible.
    """

    NODES = 4999

    def __init__(self, seed: int, vocabulary: int, impossible: float = 0.0, sharp: float = 1.5) -> None:
        dice = torch.Generator().manual_seed(seed)
        logits = sharp * torch.randn(self.NODES, vocabulary, generator=dice, dtype=torch.float64)
        gone = torch.rand(self.NODES, vocabulary, generator=dice) < impossible
        gone[:, vocabulary - 1] = False
        self.table = logits.masked_fill(gone, float("-inf")).log_softmax(1)
        self.vocabulary = vocabulary
        self.rows: list[int] = []

    def start(self, sentences: Sequence[int]) -> Int[Tensor, "sentences"]:
        """One state per sentence; sentences with different numbers have different distributions."""
        return torch.tensor([101 * number + 13 for number in sentences])

    def step(self, tokens: Tensor, state: State) -> Answer:
        self.rows.append(len(tokens))
        state = (state * 71 + tokens * 7 + 3) % self.NODES
        return self.table[state], state

    def log_probs(self, sentence: int, first: int, tokens: Sequence[int]) -> list[float]:
        """Token by token, without any search."""
        state, last, out = self.start([sentence]), first, []
        for token in tokens:
            log_probs, state = self.step(torch.tensor([last]), state)
            out.append(float(log_probs[0, token]))
            last = token
        return out

    def all_answers(
        self, sentence: int, first: int, end: int, longest: int
    ) -> list[tuple[list[int], list[float]]]:
        """Every finished answer of positive probability, by plain recursion."""

        def go_on(state: Tensor, last: int, tokens: list[int], so_far: list[float]) -> None:
            if len(tokens) == longest:
                return
            log_probs, state = self.step(torch.tensor([last]), state)
            for token, log_prob in enumerate(log_probs[0].tolist()):
                if log_prob == float("-inf"):
                    continue
                if token == end:
                    answers.append((tokens, [*so_far, log_prob]))
                else:
                    go_on(state, token, [*tokens, token], [*so_far, log_prob])

        answers: list[tuple[list[int], list[float]]] = []
        go_on(self.start([sentence]), first, [], [])
        return answers
