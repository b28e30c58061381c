"""The family of wirings."""

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from regard.core.spec import Spec


class ModelSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "sequence_to_sequence": "regard.models.sequence_to_sequence:SequenceToSequenceSpec",
        "language_model": "regard.models.language_model:LanguageModelSpec",
        "ngram": "regard.models.ngram:NgramSpec",
    }

    marks: ClassVar[tuple[int, int, int, int] | None] = None
    """The ids that padding, unknown, begin and end must have; None: the vocabulary says which."""

    def build(self, sizes: Mapping[str, int]) -> nn.Module:
        """``sizes`` of the vocabularies, by the name of the field they belong to."""
        raise NotImplementedError
