"""Replies leave in one piece.

uvicorn writes the head of a reply and then its body, and each goes to the socket at once: two calls of the
system for every reply, and a client that is woken twice.
"""

import asyncio
from typing import Any, Protocol, cast, runtime_checkable

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_AT_ONCE = 1 << 16
"""Bytes that are not held back any longer."""


@runtime_checkable
class Transport(Protocol):
    """What is needed of one; uvloop's is no asyncio.Transport by descent."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class Gathering:
    """A transport that writes what has come together when the event loop comes round."""

    def __init__(self, transport: Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held, self._size = list[bytes](), 0

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size >= _AT_ONCE:  # so that the transport can say when it is too much
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            together, self._held, self._size = b"".join(self._held), [], 0
            self._transport.write(together)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class InOnePiece(HttpToolsProtocol):
    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Gathering(transport, self.loop)))
