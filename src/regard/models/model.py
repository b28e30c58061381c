"""The family of wirings."""

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.heads.vocabulary import VocabularySpec
from regard.models.encoder import EncoderSpec
from regard.parts.pooling import MaxSpec, PoolingSpec


class ModelSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "sequence_to_sequence": "regard.models.sequence_to_sequence:SequenceToSequenceSpec",
        "language_model": "regard.models.language_model:LanguageModelSpec",
        "ngram": "regard.models.ngram:NgramSpec",
        "labeller": "regard.models.labeller:LabellerSpec",
        "masked": "regard.models.masked:MaskedModelSpec",
        "word_vectors": "regard.models.word_vectors:WordVectorsSpec",
        "two_way": "regard.models.two_way:TwoWayModelSpec",
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
