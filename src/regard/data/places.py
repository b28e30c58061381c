"""From what a person types to the files that hold the data: aligned pairs, stems, folders, splits."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from regard.core.errors import DataError
from regard.data.lines import STDIN, check_file

Where: TypeAlias = str | Path | Sequence[str | Path]
Files: TypeAlias = tuple[str | Path, ...]

FORMATS = ("tsv", "csv", "jsonl", "json", "parquet", "txt")
SPLIT_NAMES: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "dev", "validation"),
    "test": ("test",),
}
_BRACES = re.compile(r"^(?P<before>.*)\{(?P<inside>[^{}]*)\}(?P<after>.*)$")


class Splits(NamedTuple):
    """Where training, validation and test data are."""

    train: Files
    valid: Files | None = None
    test: Files | None = None


def ending(path: str | Path) -> str:
    """The format a file name ends in: "tsv" for x.tsv and x.tsv.gz; "" for anything we do not know."""
    name = Path(path).name.removesuffix(".gz")
    last = name.rpartition(".")[2].lower() if "." in name else ""
    return last if last in FORMATS else ""


def resolve(where: Where) -> Files:
    """The file, or the line-aligned files, that ``where`` means."""
    if not isinstance(where, str | Path):
        return tuple(where)
    text = str(where)
    if text == STDIN or Path(text).is_file():
        return (where,)
    if "," in text and not _BRACES.match(text):
        return tuple(part.strip() for part in text.split(","))
    named = _unfold(text)
    if named is not None:
        return named
    path = Path(text)
    if path.is_dir():
        return find_splits(path).train
    sides = _sides(path)
    if len(sides) == 2:
        return tuple(sides)
    if len(sides) > 2:
        raise _unclear(path, sides)
    check_file(path)
    return (where,)


def find_splits(where: Where) -> Splits:
    """The splits inside a folder; for anything else, training data only.

    ``FOLDER/{en,de}`` chooses two languages, and their order, among the aligned files of a folder.
    """
    if not isinstance(where, str | Path) or str(where) == STDIN:
        return Splits(resolve(where))
    folder = Path(where)
    languages: tuple[str, ...] = ()
    braces = _BRACES.match(str(where))
    if braces and not braces["after"] and Path(braces["before"] or ".").is_dir():
        folder, languages = Path(braces["before"] or "."), tuple(_inside(braces["inside"]))
    if not folder.is_dir():
        return Splits(resolve(where))
    found = {split: _split_in(folder, names, languages) for split, names in SPLIT_NAMES.items()}
    if found["train"] is None:
        there = ", ".join(sorted(path.name for path in folder.iterdir())[:12]) or "nothing"
        endings = ", ".join(f".{name}" for name in FORMATS)
        expected = f"train.* ({endings}, or two files such as train.en and train.de)"
        raise DataError(f"expected {expected} in this folder, found {there}", file=folder)
    return Splits(found["train"], found["valid"], found["test"])


def to_learn_from(data: Any, valid: Any | None) -> tuple[Any, Any | None]:
    """What is trained on and validated with: the parts of a folder, or what was given as it is."""
    if not isinstance(data, str | Path):
        return data, valid
    splits = find_splits(data)
    return splits.train, splits.valid if valid is None else valid


def to_be_judged_on(data: str) -> Files:
    """The test part of a folder, or its validation part; a file itself."""
    splits = find_splits(data)
    if not Path(data).is_dir():
        return splits.train
    chosen = splits.test or splits.valid
    if chosen is None:
        raise DataError("this folder has neither a test nor a validation part", file=data)
    return chosen


def split_named(folder: Path, split: str) -> Files | None:
    """The one file in ``folder`` that holds this split, under any of the names it goes by."""
    found = [path for name in SPLIT_NAMES[split] for path in _beside(folder / name) if ending(path)]
    if len(found) > 1:
        raise _unclear(folder / split, found)
    return (found[0],) if found else None


def _split_in(folder: Path, names: Iterable[str], languages: Sequence[str]) -> Files | None:
    for name in names:
        exact = _named(folder, name, languages)
        if exact is not None:
            return exact
    # Only then longer names such as test_2016_flickr.en: they must be the only ones of their kind.
    stems = {
        path.name.removesuffix(".gz").rpartition(".")[0]
        for path in folder.iterdir()
        if path.is_file() and any(re.match(rf"{name}[_-]", path.name) for name in names)
    }
    options = [found for stem in sorted(stems) if (found := _named(folder, stem, languages)) is not None]
    return options[0] if len(options) == 1 else None


def _named(folder: Path, stem: str, languages: Sequence[str]) -> Files | None:
    """The data called ``stem`` in this folder, if there is any and only one."""
    path = folder / stem
    if languages:
        files = [_with_language(path, language) for language in languages]
        return tuple(files) if all(file.is_file() for file in files) else None
    whole = [file for file in _beside(path) if ending(file)]
    sides = _sides(path)
    if len(whole) > 1:
        raise _unclear(path, whole)
    if whole:
        return (whole[0],)
    if len(sides) > 2:
        raise _unclear(path, sides)
    return tuple(sides) if len(sides) == 2 else None


def _unfold(text: str) -> Files | None:
    """``train.{en,de}`` as its files, in the order given."""
    braces = _BRACES.match(text)
    if braces is None:
        return None
    files = [Path(braces["before"] + part + braces["after"]) for part in _inside(braces["inside"])]
    return tuple(file if file.is_file() or not _packed(file).is_file() else _packed(file) for file in files)


def _inside(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _with_language(path: Path, language: str) -> Path:
    plain = path.with_name(f"{path.name}.{language}")
    return _packed(plain) if not plain.is_file() and _packed(plain).is_file() else plain


def _packed(path: Path) -> Path:
    return path.with_name(path.name + ".gz")


def _beside(stem: Path) -> list[Path]:
    """Files called like ``stem`` plus one ending (and perhaps .gz), in order of name."""
    if not stem.parent.is_dir():
        return []
    pattern = re.compile(re.escape(stem.name) + r"\.[^.]+(\.gz)?")
    return sorted(p for p in stem.parent.iterdir() if p.is_file() and pattern.fullmatch(p.name))


def _sides(stem: Path) -> list[Path]:
    """The line-aligned files of a stem: endings that are languages rather than formats."""
    return [path for path in _beside(stem) if not ending(path) and path.suffix != ".md"]


def _unclear(stem: Path, found: Sequence[Path]) -> DataError:
    there = ", ".join(path.name for path in found)
    languages = [path.name.removesuffix(".gz").rpartition(".")[2] for path in found[:2]]
    way_out = f"{stem}.{{{','.join(languages)}}}"
    if any(ending(path) for path in found):
        way_out = str(found[0])
    return DataError(f"several files could be meant: {there}; name them, for example {way_out}", file=stem)
