"""Two vectors a word: its own, and how it looks to the words around it (Mikolov et al. 2013a)."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.models.model import ModelSpec
from regard.parts.table_rows import table_rows


class WordVectorsSpec(ModelSpec):
    tables: ClassVar[Mapping[str, str]] = {"text": "words"}

    width: int = Field(default=100, gt=0)
    learns: bool = True
    """Has the second table, which only learning needs; vectors that come from elsewhere have none."""

    def own_width(self, field: str) -> int:
        return self.width

    def with_own_width(self, field: str, width: int) -> "WordVectorsSpec":
        return self.model_copy(update={"width": width})

    def build(self, sizes: Mapping[str, int]) -> "WordVectors":
        return WordVectors(self, sizes["text"])


class WordVectors(nn.Module):
    """Only the rows of words in a batch have a gradient: a table has many more."""

    def __init__(self, spec: WordVectorsSpec, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, spec.width)
        nn.init.uniform_(self.words.weight, -0.5 / spec.width, 0.5 / spec.width)
        self.contexts = nn.Embedding(vocabulary, spec.width) if spec.learns else None
        if self.contexts is not None:
            nn.init.zeros_(self.contexts.weight)

    def own(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]:
        """The words' own vectors."""
        return table_rows(self.words.weight, words)

    def seen(self, words: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows width"]:
        """How they look to the words around them."""
        if self.contexts is None:
            raise UsageError("these vectors came without what learning needs: model.learns=true has it")
        return table_rows(self.contexts.weight, words)

    @torch.no_grad()
    def directions(self) -> Float[Tensor, "vocabulary width"]:
        """All own vectors at length 1: what is compared."""
        return nn.functional.normalize(self.words.weight.float(), dim=-1)
