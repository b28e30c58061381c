"""Records out of every format people have, and complaints that name the place."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import DataError, UsageError
from regard.data.readers import ReadReport, Record, full_records, read_records

PAIR = ("source", "target")
ROWS = [
    ("3 mai 1979", "1979-05-03"),
    ('say "hi", you', "it's – fine"),
    ("日本語", "x\u2028y\x0cz"),
    ("a", "b"),
]


def texts(path: object, fields: tuple[str, ...] = PAIR) -> list[tuple[str, ...]]:
    return [tuple(record.fields[field] for field in fields) for record in read_records(path, fields)]  # type: ignore[arg-type]


def as_tsv(rows: list[tuple[str, str]]) -> bytes:
    return "".join(f"{a}\t{b}\n" for a, b in rows).encode()


def as_csv(rows: list[tuple[str, str]]) -> bytes:
    quoted = (",".join('"' + text.replace('"', '""') + '"' for text in row) for row in rows)
    return "".join(f"{row}\n" for row in quoted).encode()


def as_jsonl(rows: list[tuple[str, str]]) -> bytes:
    return "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in rows).encode()


def as_json_array(rows: list[tuple[str, str]]) -> bytes:
    return json.dumps([{"source": a, "target": b} for a, b in rows], indent=2).encode()


WRITERS: dict[str, Callable[[list[tuple[str, str]]], bytes]] = {
    "x.tsv": as_tsv,
    "x.txt": as_tsv,
    "x.csv": as_csv,
    "x.jsonl": as_jsonl,
    "y.json": as_jsonl,
    "x.json": as_json_array,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_every_text_format_gives_the_same_rows(name: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / (name + ".gz" if packed else name)
    content = WRITERS[name](ROWS)
    path.write_bytes(gzip.compress(content) if packed else content)
    assert texts(path) == texts(str(path)) == ROWS
    found = list(read_records(path, PAIR))
    assert [record.line for record in found] == [1, 2, 3, 4]
    assert {record.file for record in found} == {str(path)}


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.jsonl"])
def test_byte_order_marks_windows_line_ends_and_a_missing_last_one_mean_nothing(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + WRITERS[name](ROWS).replace(b"\n", b"\r\n").removesuffix(b"\r\n"))
    assert texts(path) == ROWS


plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"), max_size=8)


@given(rows=st.lists(st.tuples(plain, plain), min_size=1, max_size=6))
def test_whatever_is_written_is_read(
    rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    if {cell.strip().lower() for cell in rows[0]} & {"source", "src", "x", "input", "question"}:
        return
    for name, writer in WRITERS.items():
        (folder / name).write_bytes(writer(rows))
        assert texts(folder / name) == rows


@pytest.mark.parametrize(
    "header", [("source", "target"), ("SRC", "tgt "), ("question", "answer"), ("x", "y")]
)
def test_a_first_row_of_names_is_a_header(header: tuple[str, str], tmp_path: Path) -> None:
    for name in ("x.tsv", "x.csv"):
        (tmp_path / name).write_bytes(WRITERS[name]([header, *ROWS]))
        assert texts(tmp_path / name) == ROWS
        assert next(read_records(tmp_path / name, PAIR)).line == 2


def test_a_header_orders_and_chooses_columns(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,target,note,source\n1,b,-,a\n2,d,-,c\n", encoding="utf-8")
    assert texts(tmp_path / "x.csv") == [("a", "b"), ("c", "d")]
    (tmp_path / "x.tsv").write_text("target\tsource\nb\ta\n", encoding="utf-8")
    assert texts(tmp_path / "x.tsv") == [("a", "b")]


def test_a_quoted_csv_field_may_span_lines(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('"one\ntwo",b\nc,d\n', encoding="utf-8")
    found = list(read_records(tmp_path / "x.csv", PAIR))
    assert [record.fields["source"] for record in found] == ["one\ntwo", "c"]
    assert [record.line for record in found] == [1, 3]


@pytest.mark.parametrize(
    "keys", [("source", "target"), ("src", "tgt"), ("input", "output"), ("question", "answer")]
)
def test_json_keys_go_by_their_usual_names(keys: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        json.dumps({keys[1]: 4, keys[0]: "two and two", "more": []}), encoding="utf-8"
    )
    assert texts(tmp_path / "x.jsonl") == [("two and two", "4")]


def test_translations_come_in_the_order_of_their_keys_or_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"translation": {"de": "Hund", "en": "dog"}}), encoding="utf-8")
    assert texts(path) == [("Hund", "dog")]
    swapped = next(read_records(path, PAIR, languages=("en", "de")))
    assert swapped.fields == {"source": "dog", "target": "Hund"}
    with pytest.raises(DataError, match="'de', 'en', 'en', 'fr' wanted"):
        list(read_records(path, PAIR, languages=("en", "fr")))


def test_parquet_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    rows = ROWS * 5
    columns = {"id": list(range(20)), "tgt": [b for _, b in rows], "src": [a for a, _ in rows]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    monkeypatch.setattr("regard.data.formats.PARQUET_ROWS", 7)
    assert texts(path) == rows
    nested = [{"de": "Hund", "en": "dog"}]
    pyarrow.parquet.write_table(pyarrow.table({"translation": nested}), path)
    assert texts(path) == [("Hund", "dog")]


def test_parquet_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"sorce": ["a"], "target": ["b"]}), path)
    with pytest.raises(DataError, match=r"x\.parquet: there is no 'source' \(did you mean 'sorce'\?\)"):
        texts(path)
    pyarrow.parquet.write_table(
        pyarrow.table({"source": pyarrow.array([], "string"), "target": pyarrow.array([], "string")}), path
    )
    with pytest.raises(DataError, match="no rows"):
        texts(path)
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match=r"x\.parquet: not a readable Parquet file"):
        texts(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r'x\.parquet: .*pip install "regard\[data\]"'):
        texts(path)


def test_plain_text_is_one_field_a_line(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_bytes(b"one\ttab\n\ntwo\n")
    assert texts(tmp_path / "corpus.txt", ("text",)) == [("one\ttab",), ("",), ("two",)]


def test_standard_input_is_tabs_for_pairs_and_lines_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\n")))
    assert texts("-") == [("a", "b")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\n")))
    assert texts("-", ("text",)) == [("a\tb",)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    with pytest.raises(DataError, match="standard input:1: expected 2 columns between tabs, found 1"):
        texts("-")


def test_nul_bytes_are_characters_like_others(tmp_path: Path) -> None:
    for name in ("x.tsv", "x.csv", "x.jsonl"):
        (tmp_path / name).write_bytes(WRITERS[name]([("a\0b", "c")]))
        assert texts(tmp_path / name) == [("a\0b", "c")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.tsv", b"a\tb\nc\n", r"x\.tsv:2: expected 2 columns between tabs, found 1$"),
        ("x.tsv", b"a\tb\nc\td\te\n", r"x\.tsv:2: expected 2 columns between tabs, found 3$"),
        ("x.tsv", b"a,b\n", r"x\.tsv:1: .* found 1 \(there are commas in it\)"),
        ("x.tsv", b"source\ttarget\tid\na\tb\n", r"x\.tsv:2: expected 3 columns between tabs, found 2"),
        ("x.en", b"a b\n", r"x\.en:1: .* found 1 \(if this file is one of a line-aligned pair, give both"),
        ("x.csv", b"a,b\nc;d\n", r"x\.csv:2: .* found 1 \(there are semicolons in it\)"),
        ("x.csv", b'a,b\n"c,d\n', r"x\.csv:2: broken CSV: unexpected end of data"),
        (
            "x.jsonl",
            b'{"source": "a", "target": "b"}\n{"source": "a"\n',
            r"x\.jsonl:2: broken JSON: .* column 15",
        ),
        ("x.jsonl", b'{"source": "a", "target": "b"}\n\n', r"x\.jsonl:2: broken JSON: an empty line"),
        (
            "x.jsonl",
            b'{"source": "a", "traget": "b"}',
            r"x\.jsonl:1: there is no 'target' \(did you mean 'traget'\?\)",
        ),
        ("x.jsonl", b'"a"\n', r"x\.jsonl:1: expected an object with 'source', 'target', got 'a'"),
        (
            "x.jsonl",
            b'{"source": "a", "target": ["b"]}',
            r"x\.jsonl:1: target: expected a text, got an array",
        ),
        (
            "x.jsonl",
            b'{"source": "a", "target": true}',
            r"x\.jsonl:1: target: expected a text, got true or false",
        ),
        (
            "x.jsonl",
            rb'{"source": "a\ud83d", "target": "b"}',
            r"x\.jsonl:1: source: half a surrogate pair at character 2",
        ),
        ("x.json", b'[{"source": "a",\n "target": }]', r"x\.json:2: broken JSON"),
        ("x.tsv", b"a\tb\nab\xffc\td\n", r"x\.tsv:2: not valid UTF-8: 0xff at byte 3 of the line"),
        ("x.csv", b"a,b\n\xc3\x28,d\n", r"x\.csv:2: not valid UTF-8: 0xc3 at byte 1"),
        ("x.tsv", b"\xff\xfea\0", r"x\.tsv:1: the file is UTF-16"),
        ("x.tsv", b"", r"x\.tsv: the file is empty"),
        ("x.jsonl", b"", r"x\.jsonl: the file is empty"),
        ("x.tsv.gz", b"not gzip", r"x\.tsv\.gz:1: damaged gzip file"),
        ("x.tsv.gz", gzip.compress(b"a\tb\n" * 999, mtime=0)[:-20], r"x\.tsv\.gz:\d+: damaged gzip file"),
    ],
)
def test_bad_content_is_named_with_its_place(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said):
        texts(tmp_path / name)


def test_deep_json_is_refused_and_does_not_crash(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"source": ' + "[" * 100_000, encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.jsonl:1: broken JSON"):
        texts(tmp_path / "x.jsonl")


def test_reading_is_lazy(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"a\tb\nwrong\n")
    records = read_records(tmp_path / "x.tsv", PAIR)
    assert next(records).fields["source"] == "a"
    with pytest.raises(DataError, match=":2:"):
        next(records)


def test_empty_fields_are_counted_and_placed_and_kept_out() -> None:
    rows = [("a", "b"), ("", "b"), ("a", "  "), ("c", "d"), ("\u3000", "")]
    records = [Record({"source": a, "target": b}, "f.tsv", i) for i, (a, b) in enumerate(rows, start=1)]
    report = ReadReport()
    assert [record.line for record in full_records(records, report, shown=2)] == [1, 4]
    assert (report.kept, report.empty, report.first_empty) == (2, 3, ["f.tsv:2", "f.tsv:3"])
