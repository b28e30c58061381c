"""Tagged sentences out of all the files they come in, and complaints that name the place."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import DataError
from regard.data.column_files import ColumnSpec, TaggedReport, TaggedSentence, read_tagged

COLUMNS = b"""-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O

Peter NNP I-NP I-PER
"""
U = b"""# sent_id = 1
# text = du chat
1-2\tdu\t_\t_
1\tde\tde\tADP
2\tle\tle\tDET
2.1\tgros\tgros\tADJ
3\tchat\tchat\tNOUN

# text = # !
1\t#\t#\tSYM
2\tvery well\tvery well\tADV
"""


def written(folder: Path, content: bytes, name: str = "x.txt") -> Path:
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize("name", ["x.txt", "x.conll", "train", "x.txt.gz"])
def test_columns_by_hand(name: str, tmp_path: Path) -> None:
    path, report = written(tmp_path, COLUMNS, name), TaggedReport()
    assert list(read_tagged(path, None, report)) == [
        TaggedSentence(("EU", "rejects"), ("I-ORG", "O"), 3),
        TaggedSentence(("Peter",), ("I-PER",), 6),
    ]
    assert report == TaggedReport(sentences=2, words=3, documents=1)
    assert next(read_tagged(path, ColumnSpec(word=1, tag=-2))).words == ("NNP", "VBZ")
    assert next(read_tagged(path, ColumnSpec(tag=2))).tags == ("I-NP", "I-VP")


@pytest.mark.parametrize(
    "content",
    [
        COLUMNS.replace(b" ", b"\t"),
        COLUMNS.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + COLUMNS.rstrip(),
        COLUMNS.replace(b"NNP I", b"NNP   I").replace(b" O\n", b" O \n"),
        b"\n \n\n" + COLUMNS.replace(b"\n\n", b"\n\t\n\n") + b"\n\n",
        COLUMNS.replace(b"\n\nPeter", b"\n-DOCSTART-\nPeter"),
    ],
)
def test_what_is_between_words_and_lines_does_not_matter(content: bytes, tmp_path: Path) -> None:
    sentences = read_tagged(written(tmp_path, content))
    assert [sentence[:2] for sentence in sentences] == [
        (("EU", "rejects"), ("I-ORG", "O")),
        (("Peter",), ("I-PER",)),
    ]


def test_between_tabs_a_word_may_hold_blanks_and_a_no_break_space_anywhere(tmp_path: Path) -> None:
    first = next(read_tagged(written(tmp_path, "1 1/2\tCD\tO\n1\u00a01\tCD\tB\n".encode())))
    assert first.words == ("1 1/2", "1\u00a01")
    assert next(read_tagged(written(tmp_path, "1\u00a01 O\n".encode()))).words == ("1\u00a01",)


def test_comments_and_what_is_no_word_are_left_out_of_conll_u_only_when_asked(tmp_path: Path) -> None:
    path, report = written(tmp_path, U, "x.conllu"), TaggedReport()
    first, second = read_tagged(path, ColumnSpec(word=1, conll_u=True), report)
    assert first == TaggedSentence(("de", "le", "chat"), ("ADP", "DET", "NOUN"), 4)
    assert second == TaggedSentence(("#", "very well"), ("SYM", "ADV"), 10)
    assert (report.left_out, report.words) == (5, 5)
    plain = written(tmp_path, b"# SYM\n1-2 NUM\n")
    assert next(read_tagged(plain)).words == ("#", "1-2")


def test_a_sentence_a_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"flight\tto new york\tO B-to I-to\n\nfare\tfares\tO\n", "x.tsv")
    layout = ColumnSpec(word=1, one_a_line=True)
    assert list(read_tagged(path, layout)) == [
        TaggedSentence(("to", "new", "york"), ("O", "B-to", "I-to"), 1),
        TaggedSentence(("fares",), ("O",), 3),
    ]
    with pytest.raises(DataError, match=r"x\.tsv:1: the tag 'O B-to I-to' has blanks .* set one_a_line"):
        next(read_tagged(path, ColumnSpec(word=1)))


def test_json_in_lines_or_in_an_array(tmp_path: Path) -> None:
    objects = [{"words": ["a", "b"], "tags": ["O", "B"]}, {"tokens": ["c"], "ner_tags": [3]}]
    expected = [TaggedSentence(("a", "b"), ("O", "B"), 1), TaggedSentence(("c",), ("3",), 2)]
    lines = "\n".join(map(json.dumps, objects)).encode()
    assert list(read_tagged(written(tmp_path, lines, "x.jsonl"))) == expected
    assert list(read_tagged(written(tmp_path, lines, "x.jsonl.gz"))) == expected
    assert list(read_tagged(written(tmp_path, json.dumps(objects, indent=1).encode(), "x.json"))) == expected


def test_standard_input_is_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a O\n")))
    assert list(read_tagged("-")) == [TaggedSentence(("a",), ("O",), 1)]


word = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=5).filter(
    lambda text: not text.startswith("-DOC")
)
sentences = st.lists(st.lists(st.tuples(word, word), min_size=1, max_size=4), min_size=1, max_size=4)


@given(sentences=sentences, between=st.sampled_from([" ", "\t", "  "]))
def test_whatever_is_written_is_read(
    sentences: list[list[tuple[str, str]]], between: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "\n\n".join("\n".join(between.join(pair) for pair in sentence) for sentence in sentences)
    found = read_tagged(written(tmp_path_factory.mktemp("tagged"), text.encode()))
    assert [list(zip(one.words, one.tags, strict=True)) for one in found] == sentences


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"a N O\n\nb O\n", r"x\.txt:3: expected 3 columns between blanks, found 2"),
        ("x.txt", b"a\tN\tO\n b N O\n", r"x\.txt:2: expected 3 columns between tabs, found 1"),
        ("x.txt", b"-DOCSTART- O\n\na\n", r"x\.txt:3: expected a column 1, found 1 columns between blanks"),
        ("x.txt", b"a\t\tO\n", r"x\.txt:1: the tag is empty"),
        ("x.txt", b"a\tO\tO\n\tO\tO\n", r"x\.txt:2: the word is empty"),
        ("x.txt", b"a\tO O\tb\n", r"x\.txt:1: the tag 'O O' has blanks in it"),
        ("x.txt", b"\n-DOCSTART-\n\n", r"x\.txt: there is no sentence in the file"),
        ("x.txt", b"", r"x\.txt: the file is empty"),
        ("x.txt", b"a O\n\xff O\n", r"x\.txt:2: not valid UTF-8: 0xff at byte 1"),
        ("x.txt.gz", b"a O\n", "damaged gzip"),
        ("x.jsonl", b'{"words": ["a"], "tags": []}', r"x\.jsonl:1: 1 words, but 0 tags"),
        ("x.jsonl", b'{"words": [], "tags": []}', r"x\.jsonl:1: a word or a tag is empty"),
        ("x.jsonl", b'{"words": ["a"], "tag": ["O"]}', r"x\.jsonl:1: there is no 'tags' .*'tag'"),
        (
            "x.jsonl",
            b'{"words": "a", "tags": ["O"]}',
            r"x\.jsonl:1: words: expected an array of texts, got 'a'",
        ),
        ("x.jsonl", b'{"words": [1.5], "tags": ["O"]}', r"x\.jsonl:1: words: expected a text, got a number"),
        ("x.jsonl", b"[]\n", "no sentence"),
        ("x.jsonl", b"3\n", r"x\.jsonl:1: expected an object with 'words' and 'tags', got 3"),
        ("x.jsonl", b"{\n", r"x\.jsonl:1: broken JSON"),
    ],
)
def test_bad_content_is_named_with_its_place(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    columns = ColumnSpec(tag=1)
    with pytest.raises(DataError, match=said):
        list(read_tagged(tmp_path / name, columns))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"x\ta b\tO\n", r"x\.tsv:2: 2 words, but 1 tags"),
        (b"x\ta  b\tO O O\n", r"x\.tsv:2: a word or a tag is empty"),
        (b"x\ta b\n", r"x\.tsv:2: expected 3 columns between tabs, found 2"),
        (b"x\t\t\n", r"x\.tsv:2: a word or a tag is empty"),
    ],
)
def test_a_bad_sentence_a_line_is_named_with_its_place(line: bytes, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, b"y\ta\tO\n" + line, "x.tsv")
    with pytest.raises(DataError, match=said):
        list(read_tagged(path, ColumnSpec(word=1, one_a_line=True)))


def test_reading_is_lazy(tmp_path: Path) -> None:
    found = read_tagged(written(tmp_path, b"a O\n\nb\n"))
    assert next(found).words == ("a",)
    with pytest.raises(DataError, match=":3:"):
        next(found)
