"""The family of data: from what a person has to batches, whatever the task."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from regard.core.spec import Plain, Spec
from regard.data.lexicon import Lexicon


@runtime_checkable
class DataReport(Protocol):
    """What became of the data."""

    def summary(self) -> list[str]:
        """Sentences for people, one a line."""

    def facts(self) -> dict[str, Plain]:
        """Everything, by name."""


@runtime_checkable
class PreparedData(Protocol):
    """Ready to be trained on; batches are pure functions of seed, epoch and index."""

    @property
    def fingerprint(self) -> str: ...
    @property
    def report(self) -> DataReport: ...
    @property
    def lexicon(self) -> Lexicon:
        """Every vocabulary, by the name of the field it belongs to."""

    def epoch(self, number: int) -> Sequence[Any]: ...
    def validation(self) -> Sequence[Any]: ...
    def examples(self, most: int) -> list[tuple[str, str]]:
        """What goes in and what should come out, of validation data."""

    def close(self) -> None:
        """End what is being prepared ahead of time."""


class DataSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "pairs": "regard.data.pairs:PairsSpec",
        "text": "regard.data.text:TextSpec",
        "labelled": "regard.data.labelled:LabelledSpec",
        "passages": "regard.data.passages:PassagesSpec",
        "tagged": "regard.data.tagged:TaggedSpec",
        "words": "regard.data.word_windows:WordWindowsSpec",
        "quotes": "regard.data.quotes:QuotesSpec",
        "choices": "regard.data.choices:ChoicesSpec",
    }
    unsaid: ClassVar[str | None] = "pairs"

    fields: ClassVar[tuple[str, ...]]
    """The texts an example consists of; each has a tokenizer."""
    labels: ClassVar[tuple[str, ...]] = ()
    """The fields that hold classes."""

    def prepare(
        self,
        train: Any,
        valid: Any | None,
        seed: int,
        known: Lexicon | None,
        cache: Path | None,
    ) -> PreparedData:
        """Read, hold out, learn vocabularies (unless given), encode."""
        raise NotImplementedError

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        """Training and validation data as ``prepare`` takes them, from what a person gave."""
        raise NotImplementedError

    def records(self, data: str) -> list[tuple[str, ...]]:
        """Examples to evaluate on: the test part of a corpus or folder, or the whole of a file."""
        raise NotImplementedError
