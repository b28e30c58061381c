"""What every kind of document can do: name its texts, and be written again with others in their place.

A text that is handed out never holds a placeholder or a tag: it is split there, so that none can be lost,
changed or moved. One that runs over several lines is handed out as one line and broken again at like places.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from regard.core.errors import DataError, UsageError, nearest

FORMATS = {
    "po": "regard.data.translatable.gettext:PoDocument",
    "xliff": "regard.data.translatable.xliff:XliffDocument",
    "srt": "regard.data.translatable.subtitles:SrtDocument",
    "markdown": "regard.data.translatable.markdown:MarkdownDocument",
    "html": "regard.data.translatable.html:HtmlDocument",
}
ENDINGS = {
    ".po": "po", ".pot": "po", ".xliff": "xliff", ".xlf": "xliff", ".srt": "srt",
    ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html",
}  # fmt: skip


@runtime_checkable
class Document(Protocol):
    @property
    def texts(self) -> list[str]:
        """What is to be translated, each text on one line."""

    def replaced(self, texts: Sequence[str]) -> str:
        """The document with these in their place."""


def format_of(path: Path, wanted: str | None = None) -> str | None:
    """Which kind of document a file is, by its name or as asked for; None for plain lines."""
    if wanted is None:
        return ENDINGS.get(path.suffix.lower())
    if wanted == "lines":
        return None
    if wanted not in FORMATS:
        raise UsageError(f"--format {wanted}: not known{nearest(wanted, [*FORMATS, 'lines'])}")
    return wanted


def open_document(content: bytes, kind: str, name: str) -> Document:
    module, _, cls = FORMATS[kind].partition(":")
    try:
        made = getattr(importlib.import_module(module), cls)
    except ModuleNotFoundError as missing:
        raise UsageError(f'{name}: {kind} needs {missing.name}: pip install "regard[formats]"') from None
    try:
        return made(content.decode("utf-8-sig"))  # type: ignore[no-any-return]
    except UnicodeDecodeError as error:
        raise DataError(f"not valid UTF-8 at byte {error.start + 1}", file=name) from None
    except DataError as error:
        raise DataError(str(error), file=name) from None


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
    """Without the white space around it; None where nothing is left that has a letter in it."""
    text = whole[start:end]
    left, right = len(text) - len(text.lstrip()), len(text) - len(text.rstrip())
    return Span(start + left, end - right) if any(map(str.isalpha, text)) else None


def between(whole: str, kept: re.Pattern[str], start: int = 0, end: int | None = None) -> list[Span]:
    """Stretches of text between everything that ``kept`` matches."""
    end = len(whole) if end is None else end
    spans, begin = list[Span | None](), start
    for match in kept.finditer(whole, start, end):
        spans.append(trimmed(whole, begin, match.start()))
        begin = match.end()
    spans.append(trimmed(whole, begin, end))
    return [span for span in spans if span is not None]


_BREAK = re.compile(r"[ \t]*\r?\n\s*")


class Flow:
    """A text that runs over several lines."""

    def __init__(self, raw: str, breaks: re.Pattern[str] = _BREAK) -> None:
        self.breaks = breaks.findall(raw)
        self.pieces = breaks.split(raw)
        self.text = " ".join(self.pieces)

    def replaced(self, text: str) -> str:
        """With as many breaks, each at the space nearest to where it was; fewer where there is no space."""
        place, last, parts = -1, 0, list[str]()
        for number, string in enumerate(self.breaks, start=1):
            place += len(self.pieces[number - 1]) + 1
            wanted = round(place / max(1, len(self.text)) * len(text))
            spaces = [spot for spot in range(last + 1, len(text)) if text[spot] == " "]
            if not spaces:
                break
            leave = min(len(self.breaks) - number, len(spaces) - 1)  # to those that come after it
            spot = min(spaces[: len(spaces) - leave], key=lambda one: abs(one - wanted))
            parts += [text[last:spot], string]
            last = spot + 1
        return "".join([*parts, text[last:]])


class Flows:
    """Stretches of a text, each possibly over several lines."""

    def __init__(self, whole: str, spans: Iterable[Span], breaks: re.Pattern[str] = _BREAK) -> None:
        self._spans = Spans(whole, tuple(spans))
        self._flows = [Flow(text, breaks) for text in self._spans.texts]

    @property
    def texts(self) -> list[str]:
        return [flow.text for flow in self._flows]

    def replaced(self, texts: Sequence[str]) -> str:
        if len(texts) != len(self._flows):
            raise DataError(f"{len(self._flows)} texts to replace, but {len(texts)} are given")
        return self._spans.replaced(
            [flow.replaced(text) for flow, text in zip(self._flows, texts, strict=True)]
        )
