"""Values out of JSON files, one a line or all in one array, and complaints about them that name the place."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from regard.core.errors import DataError
from regard.data.lines import Line


def json_items(lines: Iterable[Line], name: str) -> Iterator[tuple[int, Any]]:
    """Every line's value, numbered; a file that is one array is read whole, its items counted as lines."""
    lines = iter(lines)
    for number, text in lines:
        if number == 1 and text.lstrip().startswith("["):
            whole = "\n".join([text, *(line.text for line in lines)])
            yield from enumerate(parse_json(whole, name, None), start=1)
            return
        yield number, parse_json(text, name, number)


def parse_json(text: str, name: str, number: int | None) -> Any:
    """What a text says; ``number`` is its line, None if it is a whole file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = number if number is not None else error.lineno
        said = "an empty line" if not text.strip() else f"{error.msg} at column {error.colno}"
        raise DataError(f"broken JSON: {said}", file=name, line=where) from None
    except RecursionError:
        raise DataError("broken JSON: nested too deeply", file=name, line=number) from None


def text_of(value: Any, key: str, name: str, number: int | None) -> str:
    """A text, or a whole number as one; nothing is the empty text."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"expected a text, got {kind_of(value)}", file=name, line=number, field=key)
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        said = f"half a surrogate pair at character {error.start + 1}"
        raise DataError(said, file=name, line=number, field=key) from None
    return text


def kind_of(value: Any) -> str:
    """What a value is called in a message."""
    names = {
        dict: "an object",
        list: "an array",
        bool: "true or false",
        type(None): "null",
        float: "a number",
    }
    return names.get(type(value), f"{value!r:.40}")
