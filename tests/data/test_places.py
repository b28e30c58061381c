"""What people type, and which files are meant by it."""

import gzip
from pathlib import Path

import pytest

from regard.core.errors import DataError, UsageError
from regard.data.readers import find_splits, read_records

PAIR = ("source", "target")


def fill(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"{name} 1\n{name} 2\n"
        if any(part in name for part in (".tsv", ".txt")):
            text = f"{name}\tx\n"
        if ".jsonl" in name:
            text = '{"source": "a", "target": "b"}\n'
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


def first(where: object) -> tuple[str, str]:
    record = next(read_records(where, PAIR))  # type: ignore[arg-type]
    return record.fields["source"], record.fields["target"]


def test_aligned_files_are_named_in_four_ways(tmp_path: Path) -> None:
    fill(tmp_path, "train.en", "train.de")
    stem = str(tmp_path / "train")
    forward, backward = ("train.de 1", "train.en 1"), ("train.en 1", "train.de 1")
    assert first(f"{stem}.en,{stem}.de") == backward
    assert first([f"{stem}.de", Path(f"{stem}.en")]) == forward
    assert first(f"{stem}.{{en,de}}") == backward
    assert first(f"{stem}.{{de, en}}") == forward
    assert first(stem) == forward  # alphabetical where nothing was said


def test_aligned_files_may_be_packed(tmp_path: Path) -> None:
    fill(tmp_path, "train.en.gz", "train.de.gz")
    assert first(tmp_path / "train") == ("train.de.gz 1", "train.en.gz 1")
    assert first(str(tmp_path / "train.{en,de}")) == ("train.en.gz 1", "train.de.gz 1")


@pytest.mark.parametrize(("english", "german"), [(3, 5), (5, 3), (1, 2)])
def test_aligned_files_of_different_length_name_both_counts(
    english: int, german: int, tmp_path: Path
) -> None:
    (tmp_path / "t.en").write_text("x\n" * english, encoding="utf-8")
    (tmp_path / "t.de").write_text("y\n" * german, encoding="utf-8")
    records = read_records(str(tmp_path / "t.{en,de}"), PAIR)
    with pytest.raises(DataError, match=rf"t\.en has {english} lines but .*t\.de has {german} lines"):
        list(records)


def test_the_number_of_aligned_files_must_be_that_of_the_fields(tmp_path: Path) -> None:
    fill(tmp_path, "a", "b", "c")
    with pytest.raises(UsageError, match=r"2 line-aligned files are needed \(source, target\), got 3"):
        list(read_records([tmp_path / name for name in "abc"], PAIR))


def test_a_stem_of_many_languages_is_unclear(tmp_path: Path) -> None:
    fill(tmp_path, "train.en", "train.de", "train.fr")
    with pytest.raises(DataError, match=r"train\.de, train\.en, train\.fr; name them, .*train\.\{de,en\}"):
        read_records(tmp_path / "train", PAIR)
    assert first(str(tmp_path / "train.{fr,en}")) == ("train.fr 1", "train.en 1")


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    fill(tmp_path, "train.tsv", "other.csv")
    with pytest.raises(DataError, match=r"trian\.tsv: no such file \(did you mean 'train\.tsv'\?\)"):
        list(read_records(tmp_path / "trian.tsv", PAIR))
    with pytest.raises(DataError, match=r"no such file: the folder .*nowhere does not exist"):
        list(read_records(tmp_path / "nowhere" / "x.tsv", PAIR))
    with pytest.raises(DataError, match=r"train\.fr: no such file"):
        list(read_records(str(tmp_path / "train.{fr,de}"), PAIR))


def test_a_comma_in_a_name_is_not_two_files(tmp_path: Path) -> None:
    fill(tmp_path, "a,b.tsv")
    assert first(str(tmp_path / "a,b.tsv")) == ("a,b.tsv", "x")


@pytest.mark.parametrize(
    ("names", "train", "valid", "test"),
    [
        (["train.tsv", "valid.tsv", "test.tsv"], ["train.tsv"], ["valid.tsv"], ["test.tsv"]),
        (["train.jsonl.gz", "dev.tsv", "SOURCE.md"], ["train.jsonl.gz"], ["dev.tsv"], None),
        (["train.en", "train.de", "val.en", "val.de"], ["train.de", "train.en"], ["val.de", "val.en"], None),
        (["train.txt", "test_2016.txt"], ["train.txt"], None, ["test_2016.txt"]),
        (["train.txt", "test_2016.txt", "test_2017.txt"], ["train.txt"], None, None),
        (["train.tsv", "train_small.tsv"], ["train.tsv"], None, None),
    ],
)
def test_a_folder_is_searched_for_its_splits(
    names: list[str], train: list[str], valid: list[str] | None, test: list[str] | None, tmp_path: Path
) -> None:
    fill(tmp_path, *names)
    found = [None if files is None else [Path(f).name for f in files] for files in find_splits(tmp_path)]
    assert found == [train, valid, test]
    assert first(tmp_path) == first([tmp_path / name for name in train])


def test_languages_choose_and_order_the_sides_of_a_folder(tmp_path: Path) -> None:
    fill(
        tmp_path,
        *(f"{split}.{side}" for split in ("train", "val", "test_2016") for side in ("cs", "de", "en")),
    )
    found = find_splits(str(tmp_path / "{en,cs}"))
    assert [[Path(file).name for file in files or ()] for files in found] == [
        ["train.en", "train.cs"],
        ["val.en", "val.cs"],
        ["test_2016.en", "test_2016.cs"],
    ]
    with pytest.raises(DataError, match="several files could be meant"):
        find_splits(tmp_path)


def test_a_file_is_training_data_only(tmp_path: Path) -> None:
    fill(tmp_path, "pairs.tsv", "valid.tsv")
    assert find_splits(tmp_path / "pairs.tsv") == ((tmp_path / "pairs.tsv",), None, None)


def test_a_folder_without_data_says_what_is_there(tmp_path: Path) -> None:
    fill(tmp_path, "notes.md", "valid.tsv")
    with pytest.raises(DataError, match=r"expected train\.\* .* found notes\.md, valid\.tsv"):
        find_splits(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="found nothing"):
        find_splits(tmp_path / "empty")


def test_two_formats_of_one_split_are_unclear(tmp_path: Path) -> None:
    fill(tmp_path, "train.tsv", "train.jsonl")
    with pytest.raises(DataError, match=r"several files could be meant: train\.jsonl, train\.tsv"):
        find_splits(tmp_path)
