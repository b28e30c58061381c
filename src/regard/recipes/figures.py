"""What recipes have reached, as measured: the figures of docs/results.md, whose commands stand there."""

from typing import NamedTuple


class Figure(NamedTuple):
    data: str
    measure: str
    value: str
    """As printed in docs/results.md."""
    took: str
    """Training, on two cores of a server's processor without a GPU."""
    settings: str = ""
    """What the command said beyond the recipe's name and data."""

    def __str__(self) -> str:
        said = f", {self.settings}" if self.settings else ""
        return f"{self.value} {self.measure}, {self.data}, {self.took}{said}"


FIGURES: dict[str, tuple[Figure, ...]] = {
    "transformer_tiny": (
        Figure("Multi30k en→de (tokenised, test 2016)", "BLEU, mean of three seeds", "41.55", "15 minutes"),
    ),
    "bahdanau": (
        Figure("Multi30k en→de (tokenised, test 2016)", "BLEU", "38.73", "23 minutes of one busy thread"),
    ),
    "rnn_lm": (
        Figure(
            "Penn Treebank (test)",
            "perplexity",
            "105.94",
            "23 minutes of one busy thread",
            "--set data.tokenizer.unit=blank",
        ),
    ),
    "ngram": (
        Figure(
            "Penn Treebank (test)",
            "perplexity",
            "141.19",
            "3 seconds",
            "--set data.tokenizer.unit=blank",
        ),
    ),
    "gpt_tiny": (Figure("Tiny Shakespeare (validation)", "nats a character", "1.6384", "1 minute"),),
}
