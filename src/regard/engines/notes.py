"""What was found out about this machine, written down beside the converted model."""

import json
from pathlib import Path
from typing import Any

from regard.training.durable import replace_file


class Notes:
    def __init__(self, path: Path | None) -> None:
        """``None`` forgets everything."""
        self._path = path

    def of(self, key: str) -> Any:
        """What is noted there; None if nothing is, or nothing that can be read."""
        return self._all().get(key)

    def keep(self, key: str, value: Any) -> None:
        if self._path is None:
            return
        noted = self._all() | {key: value}
        try:
            replace_file(self._path, (json.dumps(noted, indent=1) + "\n").encode())
        except OSError:
            return  # then it is found out again next time

    def _all(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            noted = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return noted if isinstance(noted, dict) else {}
