"""The inspector's page: one HTML file made of small modules, served with a model behind it, or a file."""

from typing import Any

from regard.inspection.document import document

STYLES = ("inspector.css",)
SCRIPTS = (
    "elements.js",
    "packed.js",
    "hash.js",
    "source.js",
    "colours.js",
    "saving.js",
    "lit.js",
    "grid.js",
    "strip.js",
    "parts.js",
    "view_alignment.js",
    "view_heads.js",
    "view_steps.js",
    "view_search.js",
    "view_intervene.js",
    "view_words.js",
    "view_probe.js",
    "view_run.js",
    "inspector.js",
)


def inspector_page(title: str, data: dict[str, Any], served: bool) -> str:
    """``served``: the page may ask the server it came from, and nobody else."""
    return document(title, '<div id="app"></div>', STYLES, SCRIPTS, data, asks=served, folder="web")
