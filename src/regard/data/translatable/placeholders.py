"""What programs put into texts and people must not translate."""

import re

_SIZE = r"(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|q|j|z|t|L)?"
# A space may be a flag, but "100 % sure" is text.
_PRINTF = rf"%(?:\(\w+\))?(?:\d+\$)?[-+#0']*{_SIZE}[diouxXeEfFgGcrsap@%]"
_BRACES = r"\$?\{\{[^{}\n]*\}\}|\$?\{[^{}\n]*\}"
_TAG = r"</?[A-Za-z][^<>\n]*>"
_ENTITY = r"&(?:[A-Za-z]\w*|#\d+|#x[0-9A-Fa-f]+);"
_ESCAPE = r"\\[ntr\"\\]"
_ADDRESS = r"\b(?:https?|ftp)://[^\s<>\"']+|\b[\w.+-]+@[\w-]+\.[\w.]+\b"

PLACEHOLDERS = re.compile("|".join((_PRINTF, _BRACES, _TAG, _ENTITY, _ESCAPE, _ADDRESS)))
