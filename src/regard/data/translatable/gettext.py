"""gettext catalogues (.po): entries that have no translation get one; all others stay as they are."""

from collections.abc import Sequence

import polib

from regard.core.errors import DataError
from regard.data.translatable.document import Flows, between
from regard.data.translatable.placeholders import PLACEHOLDERS


class PoDocument:
    def __init__(self, whole: str) -> None:
        try:
            self._catalogue = polib.pofile(whole, wrapwidth=0 if _unwrapped(whole) else 78)
        except (OSError, ValueError) as error:
            raise DataError(f"no gettext catalogue: {error}") from None
        self._open = [
            entry
            for entry in self._catalogue
            if not entry.obsolete and not entry.msgstr and not any(entry.msgstr_plural.values())
        ]
        self._flows = [
            Flows(text, between(text, PLACEHOLDERS)) for entry in self._open for text in _sources(entry)
        ]

    @property
    def texts(self) -> list[str]:
        return [text for flows in self._flows for text in flows.texts]

    def replaced(self, texts: Sequence[str]) -> str:
        given, flows = iter(texts), iter(self._flows)

        def translated() -> str:
            flow = next(flows)
            return flow.replaced([next(given) for _ in flow.texts])

        for entry in self._open:
            said = [translated() for _ in _sources(entry)]
            if entry.msgid_plural:
                forms = entry.msgstr_plural or {0: "", 1: ""}
                entry.msgstr_plural = {form: said[0 if form == 0 else 1] for form in forms}
            else:
                entry.msgstr = said[0]
        return f"{self._catalogue}\n"


def _sources(entry: polib.POEntry) -> list[str]:
    return [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]


def _unwrapped(whole: str) -> bool:
    """Whether the catalogue keeps long texts on one line; then it shall go on doing so."""
    return any(len(line) > 90 for line in whole.splitlines() if line.startswith(("msgid", "msgstr", '"')))
