"""Data sets of the Hugging Face hub by name: ``hf:NAME``, ``hf:NAME:CONFIG``, ``hf:NAME:CONFIG:SPLIT``.

The library ``datasets`` keeps them on disk and maps them, so that they never have to fit in memory.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from regard.core.errors import DataError, UsageError, nearest
from regard.data.formats import Record, pick

PREFIX = "hf:"
_NAMES = {"train": ("train",), "valid": ("validation", "valid", "dev"), "test": ("test",)}


class HubName(NamedTuple):
    name: str
    config: str | None
    split: str | None

    @classmethod
    def read(cls, text: str) -> "HubName":
        name, _, rest = text.removeprefix(PREFIX).partition(":")
        config, _, split = rest.partition(":")
        if not name:
            raise UsageError(f"{text!r} names no data set: expected {PREFIX}NAME[:CONFIG[:SPLIT]]")
        return cls(name, config or None, split or None)

    def __str__(self) -> str:
        parts = [self.name, self.config or "", self.split or ""]
        return PREFIX + ":".join(parts).rstrip(":")


class HubRecords:
    """The records of one split, as often as one likes."""

    def __init__(self, text: str, fields: Sequence[str]) -> None:
        self.name, self._fields = text, fields
        where = HubName.read(text)
        self._rows = _split(where, where.split or "train")

    def __iter__(self) -> Iterator[Record]:
        for number, row in enumerate(self._rows, start=1):
            yield Record(pick(row, self._fields, (), self.name, number), self.name, number)

    def fingerprint(self) -> str:
        """The library's own, which changes with every change of the data."""
        return hashlib.sha256(f"{self.name}\n{self._rows._fingerprint}".encode()).hexdigest()


def is_hub_name(data: object) -> bool:
    return isinstance(data, str) and data.startswith(PREFIX)


def hub_splits(text: str) -> dict[str, str | None]:
    """Names of the training, validation and test data of a data set, as far as it has them."""
    where = HubName.read(text)
    if where.split is not None:
        return {"train": text, "valid": None, "test": None}
    there = _library(text).get_dataset_split_names(where.name, where.config)
    found = {kind: next((name for name in names if name in there), None) for kind, names in _NAMES.items()}
    if found["train"] is None:
        raise DataError(f"expected a split 'train', found {', '.join(there)}", file=text)
    return {
        kind: None if split is None else str(where._replace(split=split)) for kind, split in found.items()
    }


def _split(where: HubName, split: str) -> Any:
    library = _library(str(where))
    try:
        return library.load_dataset(where.name, where.config, split=split)
    except ValueError as error:
        there = library.get_dataset_split_names(where.name, where.config)
        hint = nearest(split, there) if split not in there else f": {error}"
        raise DataError(f"there is no split {split!r}{hint}", file=str(where)) from None
    except (OSError, RuntimeError) as error:
        raise DataError(f"cannot be loaded: {str(error).splitlines()[0]}", file=str(where)) from None


def _library(name: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise UsageError(f'{name}: data sets by name need datasets: pip install "regard[hub]"') from None
    return datasets
