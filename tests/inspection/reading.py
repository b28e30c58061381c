"""What a browser would make of a page."""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

COMMENTS = re.compile(r"/\*.*?\*/| // [^\n]*", re.DOTALL)
VOID = {"meta", "line", "circle", "polyline", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page:
    elements: list[Element] = field(default_factory=list)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = {name.strip("_"): value for name, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.tag == tag and all(element.attributes.get(k) == v for k, v in wanted.items())
        ]

    @property
    def data(self) -> Any:
        (script,) = self.all("script", id="data")
        return json.loads(script.text)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page, self.open = Page(), list[Element]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.page.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read(html: str) -> Page:
    """Every element must be closed, in order."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader.page


def assert_self_contained(html: str) -> None:
    page = read(html)
    fetching = {"src", "href", "srcset", "data", "poster", "action", "xlink:href"}
    for element in page.elements:
        assert not fetching & set(element.attributes), element
        assert element.tag not in {"link", "iframe", "img", "object", "embed", "base"}
    # Data may speak of addresses; what the browser runs or styles with may not.
    code = [element.text for element in page.elements if element.tag in ("style", "script")]
    code.remove(page.all("script", id="data")[0].text)
    bare = COMMENTS.sub("", "".join(code))
    for sign in (
        "http:",
        "https:",
        "//",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
    ):
        assert sign not in bare, sign
    policies = [e.attributes["content"] for e in page.all("meta") if "http-equiv" in e.attributes]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none';")
