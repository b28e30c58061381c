"""What the second of two passages has to do with the first: what a reader is asked beside hidden words."""

from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Int
from pydantic import Field

from regard.core.spec import Spec


class Span(NamedTuple):
    """Some tokens of a stream that stand in one document."""

    begin: int
    end: int
    document: int


class Related(NamedTuple):
    first: Span
    second: Span
    holds: bool
    """Whether the relation that is asked about is there."""


class RelationSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "following": "regard.data.relations:FollowingSpec",
        "order": "regard.data.relations:OrderSpec",
    }

    share: float = Field(default=0.5, gt=0, lt=1)
    """Of the pairs, that it holds for."""

    def relate(
        self,
        span: Span,
        cut: int,
        documents: Int[np.ndarray, "documents ends"],
        random: np.random.Generator,
    ) -> Related:
        """Two passages of ``span``, or of its first ``cut`` tokens and others."""
        raise NotImplementedError


class FollowingSpec(RelationSpec):
    """Does the second follow the first, or is it from another document (Devlin et al. 2019 §3.1)?"""

    def relate(
        self,
        span: Span,
        cut: int,
        documents: Int[np.ndarray, "documents ends"],
        random: np.random.Generator,
    ) -> Related:
        middle = span.begin + cut
        first, second = span._replace(end=middle), span._replace(begin=middle)
        if random.random() < self.share:
            return Related(first, second, holds=True)
        return Related(first, _elsewhere(span, second.end - middle, documents, random), holds=False)


class OrderSpec(RelationSpec):
    """Do both stand as they were, or was their order changed (Lan et al. 2020 §3.1)?"""

    def relate(
        self,
        span: Span,
        cut: int,
        documents: Int[np.ndarray, "documents ends"],
        random: np.random.Generator,
    ) -> Related:
        middle = span.begin + cut
        first, second = span._replace(end=middle), span._replace(begin=middle)
        if random.random() < self.share:
            return Related(first, second, holds=True)
        return Related(second, first, holds=False)


def _elsewhere(span: Span, length: int, documents: np.ndarray, random: np.random.Generator) -> Span:
    """As many tokens of another document, or all of a shorter one; of the only one, from another place."""
    if len(documents) > 1:
        number = int(random.integers(len(documents) - 1))
        number += number >= span.document
        begin, end = (int(value) for value in documents[number])
        start = begin + int(random.integers(max(end - begin - length, 0) + 1))
        return Span(start, min(start + length, end), number)
    begin, end = (int(value) for value in documents[0])
    before, after = (max(0, room - length + 1) for room in (span.begin - begin, end - span.end))
    if not before + after:  # nothing else is there
        return span._replace(begin=span.end - length)
    place = int(random.integers(before + after))
    start = begin + place if place < before else span.end + place - before
    return Span(start, start + length, 0)
