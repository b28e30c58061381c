"""A run with random weights and a vocabulary of numbered words: what Regard is asked through as people do."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

import regard
from regard.apps.session import Run
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.recipes.system import SystemSpec
from regard.training.run_folder import RunFolder
from regard.training.weights import named_weights

_kept: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that go with the process."""


def numbered_words(vocabulary: int) -> Tokenizer:
    """So many tokens, each a word."""
    lines = [" ".join(f"w{number}" for number in range(vocabulary))]
    return Tokenizer.train(TokenizerSpec(unit="word", size=vocabulary, min_count=1), lines)


def as_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    text = tokenizer.decode(list(ids))
    assert tokenizer.encode(text) == list(ids), "what is read is what was meant"
    return text


def random_run(
    spec: SystemSpec, tokenizer: Tokenizer, change: Callable[[nn.Module], None] = lambda _: None
) -> Run:
    lexicon = Lexicon({"text": tokenizer})
    torch.manual_seed(1)
    model = spec.model.build(lexicon.sizes)
    with torch.no_grad():
        change(model)
    _kept.append(tempfile.TemporaryDirectory(prefix="regard-"))
    path = Path(_kept[-1].name) / "run"
    RunFolder.create(path, spec, 0, "none", lexicon.files()).save_weights(named_weights(model))
    return regard.load(path)
