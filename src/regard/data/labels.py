"""The names of classes, and their numbers."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.core.errors import DataError, RunError, nearest


@dataclass(frozen=True)
class Labels:
    """Class number i is called ``names[i]``."""

    names: tuple[str, ...]

    @classmethod
    def learn(cls, found: Iterable[str]) -> "Labels":
        """Each once, in the order of the alphabet: the same data give the same numbers."""
        return cls(tuple(sorted(set(found))))

    @property
    def size(self) -> int:
        return len(self.names)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def number(self, name: str, file: str | None = None, line: int | None = None) -> int:
        found = self._numbers.get(name)
        if found is None:
            raise DataError(
                f"there is no class {name!r} among the {self.size} this model tells apart"
                f"{nearest(name, self.names)}",
                file=file,
                line=line,
                field="label",
            )
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def to_json(self) -> str:
        return json.dumps({"labels": list(self.names)}, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str, where: str | Path = "labels.json") -> "Labels":
        try:
            names = json.loads(text)["labels"]
        except (ValueError, KeyError, TypeError):
            raise RunError(f"{where}: not a list of labels that regard wrote") from None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RunError(f"{where}: expected names of classes, found {names!r:.60}")
        return cls(tuple(names))
