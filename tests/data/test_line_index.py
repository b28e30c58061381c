"""Any line of a large file, read by itself, is the line that reading the file from the start gives."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import DataError
from regard.data.line_files import IndexedLines, LineFiles
from regard.data.line_index import BLOCK, LineIndex
from regard.data.lines import read_lines
from regard.data.readers import PAIR, Record, read_records

LINE = st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=6)
FILES = st.tuples(st.lists(LINE, min_size=1, max_size=40), st.booleans(), st.sampled_from(["\n", "\r\n"]))


def write(path: Path, lines: list[str], ended: bool = True, end: str = "\n") -> Path:
    text = end.join(lines) + (end if ended else "")
    path.write_bytes((text or "\n").encode())
    return path


def indexed(*files: Path, cache: Path | None = None) -> IndexedLines:
    found = LineFiles.of(files, PAIR)
    assert found is not None
    return found.indexed(cache)


@given(file=FILES, repeat=st.sampled_from([1, 20, 60]), marked=st.booleans(), data=st.data())
def test_lines_are_those_of_the_file(
    file: tuple[list[str], bool, str],
    repeat: int,
    marked: bool,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lines, ended, end = file
    path = write(tmp_path_factory.mktemp("index") / "x.txt", lines * repeat, ended, end)
    if marked:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    expected = list(read_lines(path))
    index = LineIndex.of(path, None)
    assert index.lines == len(expected)
    assert index.blocks == -(-len(expected) // BLOCK)
    assert index.read(0, index.lines) == expected
    begin = data.draw(st.integers(0, len(expected) - 1))
    stop = data.draw(st.integers(begin + 1, len(expected)))
    assert index.read(begin, stop) == expected[begin:stop]


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_chunks_may_end_anywhere(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.txt", [str(number) for number in range(count)])
    whole = LineIndex.of(path, None)
    for chunk in (1, 7, 64):
        monkeypatch.setattr("regard.data.line_index._CHUNK", chunk)
        other = LineIndex.of(path, None)
        assert other.digest == whole.digest
        assert [other.read(n, n + 1)[0].text for n in range(count)] == [str(n) for n in range(count)]


def test_the_index_is_small_and_does_not_follow_the_length_of_lines(tmp_path: Path) -> None:
    short = LineIndex.of(write(tmp_path / "short", ["a"] * 20_000), None)
    long = LineIndex.of(write(tmp_path / "long", ["a" * 300] * 20_000), None)
    assert short.nbytes == long.nbytes <= 8 * (20_000 / BLOCK + 2)


def test_an_index_is_kept_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = write(tmp_path / "x.txt", ["a", "b", "c"]), tmp_path / "cache"
    first = LineIndex.of(path, cache)
    with monkeypatch.context() as patched:
        patched.setattr(LineIndex, "_scan", lambda *_: pytest.fail("the file was read again"))
        again = LineIndex.of(path, cache)
    assert (again.lines, again.digest, again.read(0, 3)) == (3, first.digest, first.read(0, 3))
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:-3])
    assert LineIndex.of(path, cache).lines == 3
    write(path, ["a", "b", "c", "d"])
    assert LineIndex.of(path, cache).lines == 4
    same_size = write(tmp_path / "y.txt", ["a", "b", "c"])
    before = LineIndex.of(same_size, cache)
    write(same_size, ["a", "b", "x"])
    os.utime(same_size, ns=(1, 1))
    assert LineIndex.of(same_size, cache).digest != before.digest


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", ["a", "b"])
    assert LineIndex.of(path, path / "no folder").lines == 2


def test_a_file_that_changes_under_our_hands_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", [f"line {n}" for n in range(1000)])
    index = LineIndex.of(path, None)
    write(path, ["something else"] * 1000)
    with pytest.raises(DataError, match=r"x\.txt:257: the file has changed"):
        index.read(256, 300)


def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path: Path) -> None:
    left, right = write(tmp_path / "t.en", ["a"] * 700), write(tmp_path / "t.de", ["b"] * 701)
    with pytest.raises(DataError, match=r"t\.en has 700 lines but .*t\.de has 701 lines"):
        indexed(left, right)


def test_bad_bytes_and_bad_lines_keep_their_place(tmp_path: Path) -> None:
    lines = [f"{n}\t{n}" for n in range(600)]
    path = tmp_path / "x.tsv"
    path.write_bytes("\n".join(lines).encode().replace(b"500\t", b"5\xff0\t"))
    with pytest.raises(DataError, match=r"x\.tsv:501: not valid UTF-8: 0xff at byte 2"):
        list(indexed(path).block(1))
    assert len(list(indexed(path).block(0))) == BLOCK
    write(path, [*lines[:300], "only one", *lines[300:]])
    with pytest.raises(DataError, match=r"x\.tsv:301: expected 2 columns between tabs, found 1"):
        list(indexed(path).block(1))
    write(tmp_path / "x.jsonl", ['{"source": "a", "target": "b"}'] * 400 + ["{"])
    with pytest.raises(DataError, match=r"x\.jsonl:401: broken JSON"):
        list(indexed(tmp_path / "x.jsonl").block(1))
    (tmp_path / "empty.tsv").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.tsv: the file is empty"):
        indexed(tmp_path / "empty.tsv")


def forms(folder: Path) -> list[tuple[Path, ...]]:
    rows = [(f"s {n}", f"t {n} é") for n in range(700)]
    return [
        (write(folder / "t.en", [a for a, _ in rows]), write(folder / "t.de", [b for _, b in rows])),
        (write(folder / "plain.tsv", [f"{a}\t{b}" for a, b in rows]),),
        (write(folder / "noted.tsv", ["tgt\tsrc\tnote", *(f"{b}\t{a}\tx" for a, b in rows)], end="\r\n"),),
        (write(folder / "t.jsonl", [f'{{"src": "{a}", "tgt": "{b}"}}' for a, b in rows], ended=False),),
        (write(folder / "t.txt", [f"{a}\t{b}" for a, b in rows]),),
    ]


def test_every_form_gives_the_records_that_reading_it_whole_gives(tmp_path: Path) -> None:
    for files in forms(tmp_path):
        lines = indexed(*files)
        expected = list(read_records(files, PAIR))
        assert len(expected) == 700
        found: list[Record] = []
        for block in range(lines.blocks):
            found += lines.block(block)
        assert found == expected
        one_by_one = [record for n in range(lines.lines) for record in lines.records(n, n + 1)]
        assert one_by_one == expected


def test_what_cannot_be_sought_in_is_left_to_the_other_way(tmp_path: Path) -> None:
    for name, content in {
        "x.tsv.gz": b"",
        "x.csv": b"a,b\n",
        "x.parquet": b"",
        "x.json": b'\xef\xbb\xbf [\n{"source": "a", "target": "b"}]\n',
    }.items():
        (tmp_path / name).write_bytes(content)
        assert LineFiles.of((tmp_path / name,), PAIR) is None
    assert LineFiles.of((tmp_path / "missing.tsv",), PAIR) is None
    assert LineFiles.of((tmp_path / "x.csv",) * 3, PAIR) is None


def test_the_fingerprint_follows_content_and_order(tmp_path: Path) -> None:
    rows = np.array([f"{n}\t{n}" for n in range(300)])
    same = [write(tmp_path / name, rows.tolist()) for name in ("a.tsv", "b.tsv")]
    other = write(tmp_path / "c.tsv", rows[::-1].tolist())
    assert indexed(same[0]).fingerprint() == indexed(same[1]).fingerprint() != indexed(other).fingerprint()
