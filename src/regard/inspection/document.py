"""One HTML file that holds everything it needs: styles, scripts and data, and nothing fetched from anywhere.

Scripts are small ES modules in ``assets``, or in ``web``, the inspector's. Here they are joined into one, in
the order given: lines that import from a neighbour go, the word ``export`` goes, and all share one scope.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
# Even a browser that were told to fetch something could not.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def document(
    title: str,
    body: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Any,
    asks: bool = False,
    folder: str = "assets",
) -> str:
    """``body`` is HTML; ``title`` is text; ``data`` is what the scripts read as JSON. ``asks``: its scripts
    may ask the server that the page came from."""
    css = "\n".join(asset(name, folder) for name in styles)
    policy = _POLICY + ("; connect-src 'self'" if asks else "")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="regard">
<title>{escape(title)}</title>
<style>
{css}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{json_in_html(data)}</script>
<script type="module">
{bundle(scripts, folder)}</script>
</body>
</html>
"""


def json_in_html(data: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever its strings hold."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def bundle(scripts: Sequence[str], folder: str = "assets") -> str:
    """Modules as one, each after those it imports from."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", asset(name, folder))) for name in scripts)


@cache
def asset(name: str, folder: str = "assets") -> str:
    return (resources.files("regard.inspection") / folder / name).read_text(encoding="utf-8")
