"""What every kind of document can do: name its texts, and be written again with others in their place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.core.errors import DataError


class Span(NamedTuple):
    """Part of a text that is to be replaced."""

    start: int
    end: int


@dataclass(frozen=True)
class Spans:
    """A text with some of its parts exchangeable."""

    whole: str
    spans: tuple[Span, ...]

    @property
    def texts(self) -> list[str]:
        return [self.whole[span.start : span.end] for span in self.spans]

    def replaced(self, texts: Sequence[str]) -> str:
        if len(texts) != len(self.spans):
            raise DataError(f"{len(self.spans)} texts to replace, but {len(texts)} are given")
        parts, end = list[str](), 0
        for span, text in zip(self.spans, texts, strict=True):
            parts += [self.whole[end : span.start], text]
            end = span.end
        return "".join([*parts, self.whole[end:]])


def trimmed(whole: str, start: int, end: int) -> Span | None:
    """Without the white space around it; None where nothing is left."""
    text = whole[start:end]
    left, right = len(text) - len(text.lstrip()), len(text) - len(text.rstrip())
    return None if left == len(text) else Span(start + left, end - right)
