"""SubRip subtitles (.srt): what is said, cue by cue; numbers and times stay.

A cue is one text though it has several lines, unless a dash says that somebody else speaks.
"""

import re
from collections.abc import Iterator, Sequence

from regard.core.errors import DataError
from regard.data.translatable.document import Flows, Span, between

_TIME = re.compile(r"^[ \t]*\d+:\d\d:\d\d[,.]\d+[ \t]*-->[^\n]*\n?", re.MULTILINE)
_EMPTY = re.compile(r"^[ \t]*\r?$", re.MULTILINE)
_KEPT = re.compile(r"</?[A-Za-z][^<>\n]*>|\{[^{}\n]*\}|\n[ \t]*[-–—][ \t]*|\A[ \t]*[-–—][ \t]*|♪|#")


class SrtDocument:
    def __init__(self, whole: str) -> None:
        if whole.strip() and not _TIME.search(whole):
            raise DataError("no subtitles: there is no line with times, as in 00:00:01,000 --> 00:00:02,000")
        self._flows = Flows(whole, (span for cue in _cues(whole) for span in _said(whole, cue)))

    @property
    def texts(self) -> list[str]:
        return self._flows.texts

    def replaced(self, texts: Sequence[str]) -> str:
        return self._flows.replaced(texts)


def _cues(whole: str) -> Iterator[Span]:
    """From behind the times to the empty line."""
    for match in _TIME.finditer(whole):
        end = _EMPTY.search(whole, match.end())
        yield Span(match.end(), len(whole) if end is None else end.start())


def _said(whole: str, cue: Span) -> list[Span]:
    text = whole[cue.start : cue.end]
    return [Span(cue.start + span.start, cue.start + span.end) for span in between(text, _KEPT)]
