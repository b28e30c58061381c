"""Every vocabulary of a system, by the field it belongs to: tokenizers of texts, names of classes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from regard.data.labels import Labels
from regard.data.tokenizers import Tokenizer

_SHARED = "tokenizer.json"
_TOKENIZER, _LABELS = ".tokenizer.json", ".labels.json"


@dataclass(frozen=True)
class Lexicon(Mapping[str, Tokenizer]):
    """Looks like its tokenizers by field; ``labels`` are beside them."""

    tokenizers: Mapping[str, Tokenizer]
    labels: Mapping[str, Labels] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tokenizer:
        return self.tokenizers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokenizers)

    def __len__(self) -> int:
        return len(self.tokenizers)

    @property
    def sizes(self) -> dict[str, int]:
        """What a model must know to be built."""
        texts = {name: tokenizer.size for name, tokenizer in self.items()}
        return texts | {name: labels.size for name, labels in self.labels.items()}

    def differs_from(self, other: "Lexicon") -> str | None:
        """The first field in which token 17 is another word there, or that is not there."""
        for name, tokenizer in self.items():
            if name not in other or other[name].vocabulary() != tokenizer.vocabulary():
                return name
        return None

    def files(self) -> dict[str, bytes]:
        """As a run folder keeps them: one file for a tokenizer of all fields, or one for each."""
        first, *others = self.tokenizers.values()
        texts = {f"{name}{_TOKENIZER}": tokenizer for name, tokenizer in self.tokenizers.items()}
        if all(other is first for other in others):
            texts = {_SHARED: first}
        files = {name: tokenizer.to_json() for name, tokenizer in texts.items()}
        files |= {f"{name}{_LABELS}": labels.to_json() for name, labels in self.labels.items()}
        return {name: content.encode() for name, content in files.items()}

    @classmethod
    def read(
        cls, fields: tuple[str, ...], files: Mapping[str, object], read: Callable[[str], bytes], where: Path
    ) -> "Lexicon":
        """What ``files`` says is there, through ``read``, which takes a name."""

        def tokenizer(name: str) -> Tokenizer:
            return Tokenizer.from_json(read(name).decode(), where=where / name)

        if _SHARED in files:
            texts = dict.fromkeys(fields, tokenizer(_SHARED))
        else:
            texts = {name: tokenizer(f"{name}{_TOKENIZER}") for name in fields}
        classes = {
            name.removesuffix(_LABELS): Labels.from_json(read(name).decode(), where=where / name)
            for name in files
            if name.endswith(_LABELS)
        }
        return cls(texts, classes)

    def for_fields(self, fields: tuple[str, ...]) -> "Lexicon":
        """The tokenizers alone, for a system whose fields may have other names: the first serves those."""
        first = next(iter(self.tokenizers.values()))
        return Lexicon({name: self.tokenizers.get(name, first) for name in fields})
