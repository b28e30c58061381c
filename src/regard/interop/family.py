"""What a family of Hugging Face models must say to come in and go out through the same door."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.data.tokenizers import Tokenizer
from regard.interop.renaming import Renamed
from regard.recipes.system import SystemSpec


class Family(ABC):
    title: str
    """How people call it."""

    @abstractmethod
    def system(
        self, config: Mapping[str, Any], tokenizer: Tokenizer, opened: bool, where: Path
    ) -> SystemSpec:
        """The whole system that a config describes; ``where`` it stands. ``opened`` says whether texts begin
        with a special token."""

    @abstractmethod
    def config(self, system: SystemSpec, tokenizer: Tokenizer) -> dict[str, Any]:
        """The config that describes a system; a UsageError names what it has no word for."""

    @abstractmethod
    def table(self, system: SystemSpec) -> list[Renamed]:
        """Every weight under both names."""

    @abstractmethod
    def wanted(self, stored: Mapping[str, Tensor], system: SystemSpec, where: Path) -> dict[str, Tensor]:
        """The weights of a folder as the table names them, whatever class they were saved from."""
