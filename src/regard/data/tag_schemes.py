"""Spans written as one tag a word, and the five ways of writing them.

    words   Ada  Lovelace  Byron  met  Babbage
    io      I-P  I-P       I-P    O    I-P        neighbours of one type run together
    iob1    I-P  I-P       B-P    O    I-P        B only where they would (Ramshaw and Marcus 1995)
    bio     B-P  I-P       B-P    O    B-P        also called IOB2 (Tjong Kim Sang and Veenstra 1999)
    bioes   B-P  E-P       S-P    O    S-P        ends and single words are marked, too
    bilou   B-P  L-P       U-P    O    U-P        the same in other letters (Ratinov and Roth 2009)

A tag is a mark, or a mark, a hyphen and a type: ``B``, ``B-PER``, ``I-city-name``.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.core.errors import DataError

Scheme: TypeAlias = Literal["io", "iob1", "bio", "bioes", "bilou"]

OUTSIDE = "O"
MARKS: dict[Scheme, str] = {"io": "I", "iob1": "BI", "bio": "BI", "bioes": "BIES", "bilou": "BILU"}
"""What a tag of each scheme may begin with, if it is not ``O``."""
_IN_BIOES = str.maketrans("LU", "ES")
_IN_BILOU = str.maketrans("ES", "LU")


class Span(NamedTuple):
    """The words from ``begin`` to ``end``, not included."""

    type: str
    begin: int
    end: int


class _Tag(NamedTuple):
    mark: str
    """In the letters of bioes."""
    type: str
    """Empty for a bare mark and for O."""

    @property
    def inside(self) -> bool:
        return self.mark != OUTSIDE


_NOTHING = _Tag(OUTSIDE, "")


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The spans of one sentence, whatever scheme it is in.

    Broken sequences are read as conlleval and, by default, seqeval do: what cannot go on the span before it
    begins another, and what is not ended ends. So O I-A is a span of one word, and B-A I-B are two.
    """
    spans, before, begin = list[Span](), _NOTHING, 0
    for place, tag in enumerate((*map(_read, tags), _NOTHING)):
        if not (before.mark in "BI" and tag.mark in "IE" and before.type == tag.type):
            if before.inside:
                spans.append(Span(before.type, begin, place))
            begin = place
        before = tag
    return spans


def tags_of(spans: Iterable[Span], words: int, scheme: Scheme) -> list[str]:
    """The tags of a sentence with these spans; they must not overlap."""
    tags, before = [OUTSIDE] * words, Span("", 0, 0)
    for span in sorted(spans, key=lambda span: span.begin):
        if not 0 <= span.begin < span.end <= words:
            raise DataError(f"a span from {span.begin} to {span.end}, but there are {words} words")
        if span.begin < before.end:
            raise DataError(f"{span} overlaps {before}, and a word has one tag only")
        touching = span.begin == before.end > 0 and span.type == before.type
        ending = f"-{span.type}" if span.type else ""
        marks = _marks(span.end - span.begin, scheme, touching)
        tags[span.begin : span.end] = [mark + ending for mark in marks]
        before = span
    return tags


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The same spans in another scheme; in its own a broken sequence comes back mended."""
    return tags_of(spans_of(tags), len(tags), scheme)


def allowed_moves(
    tags: Sequence[str], scheme: Scheme
) -> Bool[Tensor, "tags_and_both_ends tags_and_both_ends"]:
    """[i, j]: may tag j follow tag i? The last two stand for what is before and after a sentence."""
    for tag in tags:
        if tag != OUTSIDE and tag[:1] not in MARKS[scheme]:
            raise DataError(f"the tag {tag!r} is not written as {scheme}: {', '.join(MARKS[scheme])} or O")
    nodes = [*map(_read, tags), _NOTHING, _NOTHING]
    table = torch.tensor([[_may_follow(before, tag, scheme) for tag in nodes] for before in nodes])
    table[:, len(tags)] = table[len(tags) + 1] = False
    return table


def scheme_of(sentences: Iterable[Sequence[str]]) -> Scheme | None:
    """The scheme that tagged sentences are written in; None where tags are labels of words and mark no spans.

    B and I alone are bio, unless spans begin with I and no B stands anywhere but behind one of its own type:
    then they are iob1.
    """
    marked, unmarked = dict[tuple[str, bool], str](), ""
    for sentence in sentences:
        for left, right in pairwise((OUTSIDE, *sentence)):
            before, tag = _parse(left) or _NOTHING, _parse(right)
            if tag is None:
                unmarked = right
            elif tag.inside:
                marked[right[0], before.inside and before.type == tag.type] = right
    # A bare letter may be a class of words as well: of tags beside others that are, it is one.
    typed = next((tag for tag in marked.values() if "-" in tag), None)
    if unmarked and typed is not None:
        raise DataError(f"{typed!r} marks a span, but {unmarked!r} is of no tag scheme")
    return None if unmarked else _by_marks(marked)


def scheme_of_names(names: Iterable[str]) -> Scheme | None:
    """As ``scheme_of``, of tags whose order is not known: None also where B and I alone leave it open."""
    scheme = scheme_of([[name] for name in names])
    return None if scheme in ("bio", "iob1") else scheme


def mark_spans(tags: Iterable[str]) -> bool:
    """Whether all of these tags can be read as marking spans."""
    return all(_parse(tag) is not None for tag in tags)


def _by_marks(marked: dict[tuple[str, bool], str]) -> Scheme:
    """From the marks seen, each with whether its word came right behind a word of the same type."""
    seen = {mark for mark, _ in marked}
    if seen == {"I"}:
        return "io"
    if seen <= {"B", "I"}:
        return "iob1" if ("I", False) in marked and ("B", False) not in marked else "bio"
    for scheme in ("bioes", "bilou"):
        # An end without any beginning is IOE.
        if seen <= set(MARKS[scheme]) and not ({"E", "L"} & seen and "B" not in seen):
            return scheme
    shown = ", ".join(sorted({tag for (_, _), tag in marked.items()}))
    raise DataError(
        f"no tag scheme has the marks {', '.join(sorted(seen))} (in {shown}); there are {', '.join(MARKS)}"
    )


def _may_follow(before: _Tag, tag: _Tag, scheme: Scheme) -> bool:
    of_one_type = before.inside and before.type == tag.type
    match scheme:
        case "io":
            return True
        case "iob1":
            return tag.mark != "B" or of_one_type
        case "bio":
            return tag.mark != "I" or of_one_type
        case _:
            within = before.mark in "BI"
            return of_one_type and tag.mark in "IE" if within else tag.mark in "OBS"


def _marks(words: int, scheme: Scheme, touching: bool) -> str:
    match scheme:
        case "io":
            return "I" * words
        case "iob1":
            return ("B" if touching else "I") + "I" * (words - 1)
        case "bio":
            return "B" + "I" * (words - 1)
        case _:
            marks = "S" if words == 1 else "B" + "I" * (words - 2) + "E"
            return marks.translate(_IN_BILOU) if scheme == "bilou" else marks


@lru_cache(maxsize=1 << 14)
def _parse(tag: str) -> _Tag | None:
    """None for what is no tag of any scheme."""
    mark, hyphen, type_ = tag.partition("-")
    if tag == OUTSIDE:
        return _NOTHING
    if mark not in tuple("BIESLU") or (hyphen and not type_):
        return None
    return _Tag(mark.translate(_IN_BIOES), type_)


def _read(tag: str) -> _Tag:
    parsed = _parse(tag)
    if parsed is None:
        raise DataError(f"{tag!r} is no tag of a span: O, or one of B, I, E, S, L, U, alone or as in B-TYPE")
    return parsed
