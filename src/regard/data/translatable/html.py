"""HTML: the text between tags. Tags, comments, scripts, code and what says ``translate="no"`` stay.

Every stretch of text between two tags is a text of its own, so that no tag can be lost or move.
"""

import html
from collections.abc import Sequence
from html.parser import HTMLParser

from regard.data.translatable.document import Flows, Span, trimmed

_SILENT = frozenset(
    {"script", "style", "code", "pre", "kbd", "samp", "var", "textarea", "svg", "math", "template"}
)
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)


class HtmlDocument:
    def __init__(self, whole: str) -> None:
        self._flows = Flows(whole, _Finder(whole).found())

    @property
    def texts(self) -> list[str]:
        """As a person reads them: references such as ``&amp;`` are characters."""
        return [html.unescape(text) for text in self._flows.texts]

    def replaced(self, texts: Sequence[str]) -> str:
        return self._flows.replaced([html.escape(text, quote=False) for text in texts])


class _Finder(HTMLParser):
    """Notes where text and where something else begins."""

    def __init__(self, whole: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0]
        for line in whole.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._begins = list[tuple[int, bool]]()
        self._silent = list[str]()
        self._whole = whole

    def found(self) -> list[Span]:
        self.feed(self._whole)
        self.close()
        spans, begin = list[Span | None](), None
        for place, speaks in [*self._begins, (len(self._whole), False)]:
            if speaks and begin is None:
                begin = place
            elif not speaks and begin is not None:
                spans.append(trimmed(self._whole, begin, place))
                begin = None
        return [span for span in spans if span is not None]

    def _note(self, speaks: bool) -> None:
        line, offset = self.getpos()
        self._begins.append((self._lines[line - 1] + offset, speaks and not self._silent))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(speaks=False)
        given = dict(attrs)
        kept = given.get("translate") == "no" or "notranslate" in (given.get("class") or "").split()
        # Within what is left alone, its own tags are counted, so that the right one ends it.
        if tag not in _VOID and (tag in _SILENT or kept or tag in self._silent[:1]):
            self._silent.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(speaks=False)

    def handle_endtag(self, tag: str) -> None:
        self._note(speaks=False)
        if self._silent and self._silent[-1] == tag:
            self._silent.pop()

    def handle_data(self, data: str) -> None:
        self._note(speaks=True)

    def handle_entityref(self, name: str) -> None:
        self._note(speaks=True)

    def handle_charref(self, name: str) -> None:
        self._note(speaks=True)

    def handle_comment(self, data: str) -> None:
        self._note(speaks=False)

    def handle_decl(self, decl: str) -> None:
        self._note(speaks=False)

    def handle_pi(self, data: str) -> None:
        self._note(speaks=False)

    def unknown_decl(self, data: str) -> None:
        self._note(speaks=False)
