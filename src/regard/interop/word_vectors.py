"""Vectors of words out of files and models, and into tables of other models."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.core.errors import UsageError
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer
from regard.data.words import words_of
from regard.interop.hugging_face import Taken
from regard.interop.vector_files import read_vectors
from regard.models.model import ModelSpec
from regard.recipes.word_vectors import word2vec


def read_word_vectors(path: Path) -> Taken:
    """A file of vectors as a system that can be asked: its words are the vocabulary, in their order."""
    words, vectors = read_vectors(path)
    tokenizer = Tokenizer.of_words(words)
    table = np.zeros((tokenizer.size, vectors.shape[1]), np.float32)
    table[tokenizer.size - len(words) :] = vectors
    system = word2vec().override(
        [
            f"model={{kind: word_vectors, width: {vectors.shape[1]}, learns: false}}",
            f"data.tokenizer={{unit: blank, size: {tokenizer.size}}}",
        ]
    )
    return Taken(system, Lexicon({"text": tokenizer}), {"words.weight": torch.from_numpy(table)})


def vectors_of(
    model: nn.Module, spec: ModelSpec, tokenizer: Tokenizer, field: str
) -> tuple[list[str], Float[np.ndarray, "words width"]]:
    """Every whole word that a model has a vector of its own for, in the order of its vocabulary."""
    table = table_of(model, spec, field).weight.detach().float().cpu().numpy()
    numbers = words_of(tokenizer)
    words = sorted(numbers, key=numbers.__getitem__)
    if not words:
        raise UsageError("the vocabulary of this run has no whole word")
    return words, table[[numbers[word] for word in words]]


def table_of(model: nn.Module, spec: ModelSpec, field: str) -> nn.Embedding:
    if field not in spec.tables:
        raise UsageError(f"a model of kind {spec.kind()!r} has no table of vectors for {field!r}")
    table = model.get_submodule(spec.tables[field])
    assert isinstance(table, nn.Embedding), "where the spec says there is a table"
    return table
