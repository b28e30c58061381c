"""Spans against seqeval's reading of conlleval's rules; schemes against each other and against the chain."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Tokens

from regard.core.errors import DataError
from regard.data.tag_schemes import MARKS, Scheme, Span, allowed_moves, convert, scheme_of, spans_of, tags_of

WRITTEN: dict[Scheme, list[str]] = {
    "iob1": ["I-P", "I-P", "B-P", "O", "I-Q"],
    "bio": ["B-P", "I-P", "B-P", "O", "B-Q"],
    "bioes": ["B-P", "E-P", "S-P", "O", "S-Q"],
    "bilou": ["B-P", "L-P", "U-P", "O", "U-Q"],
}
SPANS = [Span("P", 0, 2), Span("P", 2, 3), Span("Q", 4, 5)]

types = st.sampled_from(["A", "B-b", "I"])
any_tags = st.lists(
    st.one_of(st.just("O"), st.tuples(st.sampled_from("BIES"), types).map("-".join)), max_size=12
)


@st.composite
def spans_in_a_sentence(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Spans that do not overlap, often touching."""
    spans, place = list[Span](), 0
    for _ in range(draw(st.integers(0, 5))):
        begin = place + draw(st.integers(0, 2))
        place = begin + draw(st.integers(1, 3))
        spans.append(Span(draw(types), begin, place))
    return spans, place + draw(st.integers(0, 2))


def by_seqeval(tags: list[str]) -> list[tuple[str, int, int]]:
    return [(type_, begin, last + 1) for type_, begin, last in get_entities(tags)]


@pytest.mark.parametrize("scheme", WRITTEN)
def test_five_ways_of_writing(scheme: Scheme) -> None:
    tags = WRITTEN[scheme]
    assert spans_of(tags) == SPANS
    assert tags_of(reversed(SPANS), 5, scheme) == tags
    assert scheme_of([["O"], tags]) == scheme
    for other, others in WRITTEN.items():
        assert convert(tags, other) == others
    assert convert(tags, "io") == ["I-P", "I-P", "I-P", "O", "I-Q"]


@given(any_tags)
def test_any_sequence_is_read_as_seqeval_reads_it(tags: list[str]) -> None:
    assert spans_of(tags) == by_seqeval(tags)
    in_other_letters = [{"E": "L", "S": "U"}.get(tag[0], tag[0]) + tag[1:] for tag in tags]
    assert spans_of(in_other_letters) == spans_of(tags)


@pytest.mark.parametrize("length", range(5))
def test_every_short_sequence_of_bare_marks_is_read_as_seqeval_reads_it(length: int) -> None:
    for tags in itertools.product("OBIES", repeat=length):
        assert [("_", begin, end) for _, begin, end in spans_of(tags)] == by_seqeval(list(tags))


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O I-A O", [Span("A", 1, 2)]),
        ("B-A I-B I-A", [Span("A", 0, 1), Span("B", 1, 2), Span("A", 2, 3)]),
        ("I-A E-A E-A", [Span("A", 0, 2), Span("A", 2, 3)]),
        ("S-A I-A", [Span("A", 0, 1), Span("A", 1, 2)]),
        ("B I O", [Span("", 0, 2)]),
        ("", []),
    ],
)
def test_broken_sequences_by_hand(tags: str, spans: list[Span]) -> None:
    assert spans_of(tags.split()) == spans


@given(spans_in_a_sentence(), st.sampled_from(["iob1", "bio", "bioes", "bilou"]))
def test_spans_come_back_from_their_tags(drawn: tuple[list[Span], int], scheme: Scheme) -> None:
    spans, words = drawn
    tags = tags_of(spans, words, scheme)
    assert len(tags) == words
    assert spans_of(tags) == spans
    assert {tag[0] for tag in tags} <= {*MARKS[scheme], "O"}


@pytest.mark.parametrize(
    ("scheme", "theirs", "kinds"),
    # Its strict IOB1 loses a span that begins behind one of another type.
    [("iob1", IOB1, "A"), ("bio", IOB2, "AB"), ("bioes", IOBES, "AB"), ("bilou", BILOU, "AB")],
)
@given(drawn=spans_in_a_sentence(), data=st.data())
def test_seqeval_finds_the_same_spans_in_its_strict_mode(
    scheme: Scheme, theirs: type, kinds: str, drawn: tuple[list[Span], int], data: st.DataObject
) -> None:
    spans, words = drawn
    spans = [span._replace(type=data.draw(st.sampled_from(kinds))) for span in spans]
    entities = Tokens(tags_of(spans, words, scheme), theirs).entities
    assert [(entity.tag, entity.start, entity.end) for entity in entities] == spans


@given(any_tags, st.sampled_from(list(MARKS)))
def test_mended_sequences_are_allowed_and_mending_twice_is_mending_once(
    tags: list[str], scheme: Scheme
) -> None:
    mended = convert(tags, scheme)
    assert convert(mended, scheme) == mended
    names = sorted({*mended, "O"})
    table = allowed_moves(names, scheme)
    path = [len(names), *map(names.index, mended), len(names) + 1]
    assert all(table[a, b] for a, b in itertools.pairwise(path))


@pytest.mark.parametrize("scheme", list(MARKS))
def test_what_is_allowed_is_exactly_what_spans_are_written_as(scheme: Scheme) -> None:
    """Every sequence of up to four tags: it may be made, if and only if it is its own mending."""
    names = ["O", *(f"{mark}-{type_}" for type_ in "AB" for mark in MARKS[scheme])]
    table, ends = allowed_moves(names, scheme), [len(names), len(names) + 1]
    for length in range(1, 5):
        for path in itertools.product(range(len(names)), repeat=length):
            tags = [names[number] for number in path]
            may = all(table[a, b] for a, b in itertools.pairwise((ends[0], *path, ends[1])))
            assert may == (convert(tags, scheme) == tags), tags


def test_nothing_comes_before_the_begin_or_after_the_end() -> None:
    table = allowed_moves(["O", "B", "I"], "bio")
    assert not table[:, 3].any()
    assert not table[4].any()
    assert table[3].tolist() == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        (["I-A I-A O"], "io"),
        (["O I-A", "I-A B-A"], "iob1"),
        (["B-A I-A", "O B-A"], "bio"),
        (["O I-A I-A", "O B-A"], "bio"),  # one broken sentence does not make it iob1
        (["B-A B-A"], "bio"),
        (["B O", "I O B I"], "bio"),
        (["O O", ""], "bio"),
        (["S-A O"], "bioes"),
        (["O U-A"], "bilou"),
        (["NN VB", "-LRB-"], None),
        (["PER O LOC"], None),
    ],
)
def test_the_scheme_is_seen_in_the_tags(sentences: list[str], scheme: Scheme | None) -> None:
    assert scheme_of(sentence.split() for sentence in sentences) == scheme


def test_complaints_name_the_tag() -> None:
    with pytest.raises(DataError, match="'X-PER' is no tag of a span"):
        spans_of(["O", "X-PER"])
    with pytest.raises(DataError, match="'B-' is no tag of a span"):
        spans_of(["B-"])
    with pytest.raises(DataError, match="'B-A' marks a span, but 'PER' is of no tag scheme"):
        scheme_of([["B-A", "O", "PER"]])
    with pytest.raises(DataError, match=r"no tag scheme has the marks B, E, L \(in B-A, E-A, L-A\)"):
        scheme_of([["B-A", "E-A", "L-A"]])
    with pytest.raises(DataError, match="marks E, I"):
        scheme_of([["I-A", "E-A"]])
    with pytest.raises(DataError, match="'E-A' is not written as bio: B, I or O"):
        allowed_moves(["O", "B-A", "E-A"], "bio")
    with pytest.raises(DataError, match=r"type='A', begin=1, end=3\) overlaps .*begin=0, end=2"):
        tags_of([Span("A", 1, 3), Span("B", 0, 2)], 4, "bio")
    with pytest.raises(DataError, match="from 1 to 3, but there are 2 words"):
        tags_of([Span("A", 1, 3)], 2, "bio")
