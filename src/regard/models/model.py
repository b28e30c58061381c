"""The family of wirings."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import torch
from torch import nn

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.heads.vocabulary import VocabularySpec
from regard.models.encoder import EncoderSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.pooling import MaxSpec, PoolingSpec


class ModelSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "sequence_to_sequence": "regard.models.sequence_to_sequence:SequenceToSequenceSpec",
        "language_model": "regard.models.language_model:LanguageModelSpec",
        "ngram": "regard.models.ngram:NgramSpec",
        "labeller": "regard.models.labeller:LabellerSpec",
        "masked": "regard.models.masked:MaskedModelSpec",
        "word_vectors": "regard.models.word_vectors:WordVectorsSpec",
        "detector": "regard.models.detector:DetectorSpec",
        "two_way": "regard.models.two_way:TwoWayModelSpec",
        "reader": "regard.models.reader:ReaderSpec",
        "between": "regard.models.between:BetweenSpec",
    }

    marks: ClassVar[tuple[int, int, int, int] | None] = None
    """The ids that padding, unknown, begin and end must have; None: the vocabulary says which."""

    reads_as: ClassVar[str] = "encoder"
    """The name of what reads, in the names of its weights."""
    begins: ClassVar[bool] = True
    """Whether the rows it learns from begin with the begin mark."""

    tables: ClassVar[Mapping[str, str]] = {}
    """By field, where in the model the table of its tokens is, and in the spec what makes it."""

    def build(self, sizes: Mapping[str, int]) -> nn.Module:
        """``sizes`` of the vocabularies, by the name of the field they belong to."""
        raise NotImplementedError

    def own_width(self, field: str) -> int:
        """How wide the table of a field's tokens is."""
        return self._embedding(field).own

    def with_own_width(self, field: str, width: int) -> "ModelSpec":
        """The same with a table of another width.

        Where all that reads it is as wide as it was, the embedding is as wide as the table; where more hangs
        on its width (residual connections), the table is led to the width there was.
        """
        table = width + self._embedding(field).spelled
        as_wide = self._with_embedding(field, {"width": table, "table": None})
        return as_wide if self._reads_alike(as_wide, field) else self.with_table(field, width)

    def with_table(self, field: str, width: int) -> "ModelSpec":
        """The same with a table of another width that is led to the width there was."""
        embedding = self._embedding(field)
        table = width + embedding.spelled
        return self._with_embedding(field, {"table": None if table == embedding.width else table})

    def _embedding(self, field: str) -> EmbeddingSpec:
        found: Any = self
        for name in self._path(field):
            found = getattr(found, name)
        return cast(EmbeddingSpec, found)

    def _with_embedding(self, field: str, changed: Mapping[str, int | None]) -> "ModelSpec":
        values = self.to_dict()
        place: Any = values
        for name in self._path(field):
            place = place[name]
        place.update(changed)
        return type(self).from_dict(values)

    def _reads_alike(self, other: "ModelSpec", field: str) -> bool:
        """Whether what stands on the embedding puts out as much in both; this allocates nothing."""
        reader, _ = self._path(field)
        try:
            with torch.device("meta"):
                widths = [
                    getattr(model.build(dict.fromkeys((*self.tables, "label"), 8)), reader).stack.width
                    for model in (self, other)
                ]
        except UsageError:
            return False
        return bool(widths[0] == widths[1])

    def _path(self, field: str) -> list[str]:
        return self.tables[field].removesuffix(".tokens").split(".")

    def reader(self) -> EncoderSpec:
        """What of it reads: where another model may start from."""
        raise UsageError(f"a model of kind {self.kind()!r} has nothing that reads: start from another")

    def writer(self) -> VocabularySpec | None:
        """What it says with which token comes next, read off what reads; None: it does not say that."""
        return None

    def tied_words(self) -> bool:
        """Whether it does so by the matrix of its embedding."""
        return True

    def summary(self) -> PoolingSpec:
        """Where its reader says what it has read: everywhere, unless it learned to do so at one place."""
        return MaxSpec()
