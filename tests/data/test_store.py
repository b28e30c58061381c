"""Rows come back as they went in, from memory or from a mapped file, and a torn file is never trusted."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import RunError
from regard.core.sequences import Tokens
from regard.data.store import StoreWriter, TokenStore, element_type, write_atomically

KEY = bytes(range(32))
rows_of_ids = st.lists(st.lists(st.integers(0, 60_000), max_size=7), max_size=11)


def write(path: Path, rows: list[list[int]], limit: int, block: int = 3) -> TokenStore:
    writer = StoreWriter(np.uint16, limit, path, KEY)
    for start in range(0, len(rows), block):
        writer.add(rows[start : start + block])
    return writer.finish()


@given(rows=rows_of_ids, limit=st.sampled_from([0, 20, 10**9]))
def test_rows_come_back(rows: list[list[int]], limit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("store") / "rows"
    store = write(path, rows, limit)
    assert store.mapped == path.exists()
    assert [row.tolist() for row in store] == rows
    assert store.lengths.tolist() == [len(row) for row in rows]
    assert [row.tolist() for row in TokenStore.of(rows, 65_536)] == rows
    if store.mapped:
        opened = TokenStore.open(path, KEY)
        assert opened is not None
        assert [row.tolist() for row in opened] == rows


def test_only_what_outgrows_memory_goes_to_a_file(tmp_path: Path) -> None:
    rows = [[1] * 10 for _ in range(30)]
    assert not write(tmp_path / "small", rows, limit=600).mapped
    assert write(tmp_path / "large", rows, limit=599).mapped
    assert [path.name for path in tmp_path.iterdir()] == ["large"]


def test_ids_take_as_little_room_as_they_need() -> None:
    assert element_type(65_536) is np.uint16
    assert element_type(65_537) is np.int32
    assert TokenStore.of([[70_000]], 70_001)[0].tolist() == [70_000]


def test_every_truncation_and_every_wrong_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    write(path, [[1, 2, 3], [4], []], limit=0)
    whole = path.read_bytes()
    assert TokenStore.open(path, KEY) is not None
    assert TokenStore.open(path, bytes(32)) is None
    assert TokenStore.open(tmp_path / "none", KEY) is None
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert TokenStore.open(path, KEY) is None
    path.write_bytes(whole + b"\0")
    assert TokenStore.open(path, KEY) is None


def test_an_unfinished_file_leaves_no_trace(tmp_path: Path) -> None:
    writer = StoreWriter(np.uint16, 0, tmp_path / "rows", KEY)
    writer.add([[1, 2]])
    assert [path.name for path in tmp_path.iterdir()] != ["rows"]
    writer.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    abandoned, alive = tmp_path / ".rows.999999999.tmp", tmp_path / ".rows.1.tmp"
    abandoned.write_bytes(b"torn")
    alive.write_bytes(b"being written")
    write(tmp_path / "rows", [[1]], limit=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".rows.1.tmp", "rows"]


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    writer = StoreWriter(np.uint16, 0, tmp_path / "file" / "rows", KEY)
    with pytest.raises(RunError, match=r"rows: cannot be written"):
        writer.add([[1]])


def test_a_full_disk_is_named_and_nothing_is_left() -> None:
    with pytest.raises(RunError, match="No space left on device"):
        write_to_full_device()


def write_to_full_device() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    writer = StoreWriter(np.uint16, 0, Path("/dev/full"), KEY)
    writer._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
    try:
        writer.add([[1, 2]])
    finally:
        writer._file.close()
        writer._file = None


@given(
    rows=st.lists(st.lists(st.integers(4, 99), max_size=7), min_size=1, max_size=5),
    begin=st.sampled_from([None, 2]),
)
def test_padding_rows_equals_padding_them_one_by_one(rows: list[list[int]], begin: int | None) -> None:
    store = TokenStore.of(rows, 100)
    chosen = np.arange(len(rows))[::-1].copy()
    found = store.padded(chosen, 0, begin, 3)
    first = [] if begin is None else [begin]
    expected = Tokens.pad([[*first, *rows[i], 3] for i in chosen], 0)
    assert found.ids.equal(expected.ids)
    assert found.real.equal(expected.real)


def test_rows_out_of_range_are_refused() -> None:
    store = TokenStore.of([[1]], 5)
    with pytest.raises(IndexError, match="row 1 of 1"):
        store[1]


def test_text_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text(encoding="utf-8") == "two"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RunError, match="cannot be written"):
        write_atomically(tmp_path / "none" / "x.json", "three")
