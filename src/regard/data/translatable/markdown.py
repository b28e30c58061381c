"""Markdown: the text of paragraphs, headings, lists, quotes and tables, between the marks that shape it.

markdown-it says which lines are text and which are code, HTML or front matter; within those the source itself
is exchanged, so that everything else stays as it was written.
"""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt

from regard.data.translatable.document import Flows, Span, between
from regard.data.translatable.placeholders import PLACEHOLDERS

_INLINE = "|".join(
    (
        r"(?P<ticks>`+)(?:(?!(?P=ticks)).|\n)+?(?P=ticks)",  # code
        r"!?\[(?=[^\[\]]*\]\()",  # a link begins
        r"\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)",  # where it leads
        r"\]\[[^\[\]\n]*\]|\[\^[^\[\]\n]*\]:?|\[[ xX]\](?=\s)|[\[\]]",
        r"<[^<>\n]+>",  # HTML, an address
        r"\\.|\*+|(?<!\w)_+|_+(?!\w)|~~|==|\|",
        r"\$\$?[^$\n]+\$\$?",
        PLACEHOLDERS.pattern,
    )
)
_KEPT = re.compile(_INLINE)
_MARKS = re.compile(r"[ \t]*(?:(?:[-+*]|\d+[.)])[ \t]+|>[ \t]?|#{1,6}[ \t]+)*")
_BREAK = re.compile(r"(?:[ \t]*|\\)\r?\n[ \t>]*")
_FRONT = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*\n", re.DOTALL)
_DEFINED = re.compile(r"^[ \t>]*\[(?!\^)[^\[\]\n]+\]:[^\n]*$", re.MULTILINE)


class MarkdownDocument:
    def __init__(self, whole: str) -> None:
        front = _FRONT.match(whole)
        begin = front.end() if front else 0
        # Front matter is blanked, not cut: lines must keep their numbers.
        readable = re.sub(r"[^\n]", " ", whole[:begin]) + whole[begin:]
        self._flows = Flows(whole, _spans(whole, readable), _BREAK)

    @property
    def texts(self) -> list[str]:
        return self._flows.texts

    def replaced(self, texts: Sequence[str]) -> str:
        return self._flows.replaced(texts)


def _spans(whole: str, readable: str) -> Iterator[Span]:
    starts = [0]
    for line in readable.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    last = 0
    for token in MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(readable):
        if token.type != "inline" or token.map is None:
            continue
        first, end = token.map
        begin = max(last, starts[first])
        begin += len(_MARKS.match(whole, begin)[0])  # type: ignore[index]
        stop = min(starts[end] - 1, len(whole))
        if begin >= stop:
            continue
        last = stop
        for span in between(whole, _KEPT, begin, stop):
            if not _DEFINED.match(whole, whole.rfind("\n", 0, span.start) + 1):
                yield span
