"""The tape: see, and change, what parts compute, by name, without touching their code.

A part asks ``watching(self)`` once per call. When no tape is open the answer is None and the part takes its
fastest path; when one is open the part passes its intermediate values through it::

    with Tape(model) as tape:
        model(...)
    tape["decoder.stack.layers.0.mixers.1.weights"]     # one tensor per call, in order

``edits`` replaces values on the way: a head switched off, attention made uniform, a residual cut. An edit
whose name nobody used is an error: it would be believed and have done nothing.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TypeAlias

from torch import Tensor, nn

from regard.core.errors import UsageError, nearest

Watch: TypeAlias = Callable[[str, Tensor], Tensor]
Edit: TypeAlias = Callable[[Tensor], Tensor]

_open_tape: ContextVar["Tape | None"] = ContextVar("open_tape", default=None)


class Tape:
    """``keeps``: False where values are only to be changed, not seen; their names are noted all the same."""

    def __init__(self, model: nn.Module, edits: Mapping[str, Edit] | None = None, keeps: bool = True) -> None:
        self._names = {module: name for name, module in model.named_modules()}
        self._edits = dict(edits or {})
        self._keeps = keeps
        self._token: Token[Tape | None] | None = None
        self.records: dict[str, list[Tensor]] = {}

    def __enter__(self) -> "Tape":
        self._token = _open_tape.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None, "a tape is closed once, after it was opened"
        _open_tape.reset(self._token)
        self._token = None
        if error is None:
            for name in self._edits.keys() - self.records.keys():
                raise UsageError(f"nothing passed by the name {name!r}{nearest(name, self.records)}")

    def __getitem__(self, name: str) -> list[Tensor]:
        return self.records[name]

    def ending_with(self, suffix: str) -> dict[str, list[Tensor]]:
        """All records whose last name is ``suffix``, in the order in which they were first made."""
        return {name: seen for name, seen in self.records.items() if name.split(".")[-1] == suffix}

    def pass_through(self, module: nn.Module, name: str, value: Tensor) -> Tensor:
        owner = self._names.get(module)
        if owner is None:
            return value
        full = f"{owner}.{name}" if owner else name
        edit = self._edits.get(full)
        if edit is not None:
            value = edit(value)
        seen = self.records.setdefault(full, [])
        if self._keeps:
            seen.append(value.detach())
        return value


def watching(module: nn.Module) -> Watch | None:
    """How ``module`` shows a value to the open tape, or None when nobody is looking."""
    tape = _open_tape.get()
    if tape is None:
        return None
    return lambda name, value: tape.pass_through(module, name, value)
