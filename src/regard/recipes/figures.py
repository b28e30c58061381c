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
    "awd_lstm": (
        Figure(
            "Penn Treebank (test)",
            "perplexity",
            "87.99",
            "36 minutes of one thread",
            "--set data.tokenizer.unit=blank",
        ),
    ),
    "gpt": (
        Figure(
            "Penn Treebank (test)",
            "perplexity",
            "86.92",
            "27 minutes of one thread",
            "seven layers, 128 wide",
        ),
        Figure(
            "Tiny Shakespeare (validation)",
            "nats a character",
            "1.4883",
            "an hour of one thread",
            "--set data.tokenizer.unit=character --set data.window=256",
        ),
    ),
    "transformer_xl": (
        Figure(
            "Penn Treebank (test)",
            "perplexity",
            "77.83",
            "33 minutes of one thread",
            "seven layers, 128 wide",
        ),
    ),
    "bilstm_tagger": (
        Figure("CoNLL-2003 (test), from nothing", "F1", "85.58", "13 minutes of one busy thread"),
        Figure("CoNLL-2003 (test)", "F1", "86.90", "5.5 minutes of one busy thread", "--vectors GloVe"),
    ),
    "tagger": (Figure("CoNLL-2003 (test)", "F1", "90.05", "11 minutes of one busy thread", "--from MiniLM"),),
    "classifier": (
        Figure("SST-2 (test), from nothing", "accuracy", "84.1", "4 minutes of a very busy machine"),
        Figure("SST-2 (test)", "accuracy", "90.2 %", "11 minutes of one busy thread", "--from MiniLM"),
    ),
    "text_cnn": (
        Figure(
            "TREC, six classes (test), from nothing",
            "accuracy, mean of three seeds",
            "90.6",
            "40 seconds of one busy thread",
        ),
    ),
    "pair_classifier": (
        Figure("MRPC (test)", "accuracy", "80.0 %", "4 minutes of one busy thread", "--from MiniLM"),
        Figure("SICK, entailment (test)", "accuracy", "86.3 %", "624 updates", "--from MiniLM"),
    ),
    "similarity": (
        Figure("SICK, relatedness (test)", "Pearson", "0.871", "3 minutes of one thread", "--from MiniLM"),
    ),
    "bert": (
        Figure("WikiText-2 (validation)", "nats a hidden word", "4.70", "12 minutes of one busy thread"),
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
