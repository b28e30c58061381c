"""What a family of Hugging Face models must say to come in and go out through the same door."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from regard.data.tokenizers import Tokenizer
from regard.interop.renaming import Renamed
from regard.recipes.system import SystemSpec


class Offered(NamedTuple):
    """A folder as it was found."""

    folder: Path
    config: Mapping[str, Any]
    stored: Mapping[str, Tensor]


class Vocabulary(NamedTuple):
    tokenizer: Tokenizer
    opened: bool
    """Every text is read after a mark."""
    reads: Tokenizer | None = None
    """Cuts what is read, where that is cut otherwise than what is written; the numbers are the same."""


class Wanted(NamedTuple):
    weights: dict[str, Tensor]
    """As the table names them."""
    left: list[str]
    """Names of those that have no place here and are left behind."""


class Family(ABC):
    title: str
    """How people call it."""
    kinds: tuple[str, ...]
    """Of models that it may be able to say."""
    prefix: str
    """How the names of its weights begin, those of its heads left aside."""

    @abstractmethod
    def vocabulary(self, offered: Offered) -> Vocabulary:
        """What a folder's texts are cut into."""

    @abstractmethod
    def system(self, offered: Offered, vocabulary: Vocabulary) -> SystemSpec:
        """The whole system that a folder holds."""

    @abstractmethod
    def config(self, system: SystemSpec, tokenizer: Tokenizer) -> dict[str, Any]:
        """The config that describes a system as well as one of this family can."""

    @abstractmethod
    def differences(self, system: SystemSpec, config: Mapping[str, Any]) -> list[str]:
        """What ``config`` has no word for, in words for people."""

    def prefers(self, system: SystemSpec, tokenizer: Tokenizer) -> bool:
        """Whether it is the one to choose among several that could say everything."""
        return False

    @abstractmethod
    def table(self, system: SystemSpec) -> list[Renamed]:
        """Every weight under both names."""

    @abstractmethod
    def wanted(self, offered: Offered, system: SystemSpec) -> Wanted:
        """The weights of a folder as the table names them, whatever class they were saved from."""

    def given(self, theirs: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
        """Our weights under their names, with what they have beside them."""
        return theirs

    @abstractmethod
    def files(self, system: SystemSpec, tokenizer: Tokenizer, config: Mapping[str, Any]) -> dict[str, bytes]:
        """What stands beside config and weights, the vocabulary above all."""
