"""Files are replaced in one piece, and sealed ones vouch for themselves."""

import os
from pathlib import Path

import pytest

from regard.core.errors import RunError, TrainingError
from regard.training import durable


class Gone(BaseException):
    """The process is gone."""


def test_a_reader_finds_the_old_file_until_it_finds_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    seen: list[bytes] = []
    rename = os.replace

    def watched(source: Path, target: Path) -> None:
        seen.append(path.read_bytes())
        rename(source, target)
        seen.append(path.read_bytes())

    def write(temporary: Path, content: bytes) -> None:
        temporary.write_bytes(content[:1])
        seen.append(path.read_bytes())
        temporary.write_bytes(content)

    monkeypatch.setattr("os.replace", watched)
    durable.replace_file(path, b"new", write)
    assert seen == [b"old", b"old", b"new"]
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_what_is_replaced_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda file: (order.append("sync"), sync(file))[1])
    monkeypatch.setattr("os.replace", lambda a, b: (order.append("rename"), rename(a, b))[1])
    durable.replace_file(tmp_path / "file", b"new")
    assert order == ["sync", "rename", "sync"]


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(temporary: Path, content: bytes) -> None:
        temporary.write_bytes(content[:1])
        raise Gone

    with pytest.raises(Gone):
        durable.replace_file(path, b"new", fail)
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_seal_covers_every_byte_and_keeps_the_length(tmp_path: Path) -> None:
    plain = b'{"sha256": "' + durable.UNSEALED.encode() + b'", "a": 1}'
    sealed = durable.seal(plain)
    assert len(sealed) == len(plain)
    path = tmp_path / "file"
    path.write_bytes(sealed)
    assert durable.read_sealed(path) == sealed
    for bit in range(8 * len(sealed)):
        bad = bytearray(sealed)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with pytest.raises(RunError, match=f"{path}: damaged"):
            durable.read_sealed(path)


def test_a_file_without_a_seal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"{}")
    with pytest.raises(RunError, match="no readable checksum"):
        durable.read_sealed(tmp_path / "file")


def test_a_folder_in_place_of_a_file_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"{tmp_path}: cannot be read: Is a directory"):
        durable.read_bytes(tmp_path)


def test_failures_to_write_say_what_why_and_what_is_safe() -> None:
    with (
        pytest.raises(TrainingError, match=r"^x/y: cannot be written: Read-only file system; all is well$"),
        durable.said_clearly(Path("x/y"), "all is well"),
    ):
        raise OSError(30, "Read-only file system")
