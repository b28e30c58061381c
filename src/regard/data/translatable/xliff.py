"""XLIFF 1.2 and 2: a target for every unit that has none, with the inline codes of its source."""

import copy
from collections.abc import Iterator, Sequence

from lxml import etree

from regard.core.errors import DataError
from regard.data.translatable.document import Flows, between
from regard.data.translatable.placeholders import PLACEHOLDERS

_CODES = frozenset({"ph", "bpt", "ept", "it", "x", "bx", "ex", "sc", "ec", "cp", "sm", "em"})
"""Inline elements whose content is not text; that of others (g, mrk, pc) is."""


class XliffDocument:
    def __init__(self, whole: str) -> None:
        # No entities, no network, no trees beyond reason: a document comes from anywhere.
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, strip_cdata=False)
        try:
            self._tree = etree.ElementTree(etree.fromstring(whole.encode(), parser))
        except etree.XMLSyntaxError as error:
            raise DataError(f"no XML: {error.msg}", line=error.lineno) from None
        if etree.QName(self._tree.getroot()).localname != "xliff":
            raise DataError("no XLIFF: its root is not <xliff>")
        self._encoding = self._tree.docinfo.encoding or "utf-8"
        self._declared = whole.lstrip().startswith("<?xml")
        self._targets = [target for source in self._sources() if (target := _target(source)) is not None]
        self._slots = [slot for target in self._targets for slot in _slots(target)]
        self._flows = [Flows(text, between(text, PLACEHOLDERS)) for text in map(_text, self._slots)]

    @property
    def texts(self) -> list[str]:
        return [text for flows in self._flows for text in flows.texts]

    def replaced(self, texts: Sequence[str]) -> str:
        given = iter(texts)
        for (element, place), flows in zip(self._slots, self._flows, strict=True):
            setattr(element, place, flows.replaced([next(given) for _ in flows.texts]))
        body = etree.tostring(self._tree, encoding="unicode")
        head = f'<?xml version="1.0" encoding="{self._encoding}"?>\n' if self._declared else ""
        return f"{head}{body}\n"

    def _sources(self) -> Iterator[etree._Element]:
        for element in self._tree.getroot().iter():
            if not isinstance(element.tag, str) or etree.QName(element).localname != "source":
                continue
            above = [element, *element.iterancestors()]
            names = {etree.QName(one).localname for one in above}
            if "alt-trans" not in names and not any(one.get("translate") == "no" for one in above):
                yield element


def _target(source: etree._Element) -> etree._Element | None:
    """An empty target beside the source, with its content; None where there is a translation already."""
    parent, namespace = source.getparent(), etree.QName(source).namespace
    if parent is None:
        return None
    name = f"{{{namespace}}}target" if namespace else "target"
    target = parent.find(name)
    if target is None:
        target = etree.Element(name)
        target.tail = source.tail
        parent.insert(parent.index(source) + 1, target)
    elif len(target) or (target.text or "").strip():
        return None
    target.text = source.text
    target.extend(copy.deepcopy(child) for child in source)
    return target


def _slots(element: etree._Element) -> Iterator[tuple[etree._Element, str]]:
    """Where text stands: before the first child of an element, and behind each."""
    if etree.QName(element).localname not in _CODES:
        yield element, "text"
        for child in element:
            if isinstance(child.tag, str):
                yield from _slots(child)
            yield child, "tail"


def _text(slot: tuple[etree._Element, str]) -> str:
    element, place = slot
    return getattr(element, place) or ""
