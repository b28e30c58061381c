"""A server as a process: a socket, and an end in which everything that was accepted is answered."""

import asyncio
import logging
import signal
import socket
import sys
from types import FrameType

import uvicorn

from regard.apps.serving.gate import Gate
from regard.apps.serving.wire import InOnePiece
from regard.apps.settling import settle
from regard.core.errors import UsageError

_CONNECTIONS = 4096
"""Open at once; what comes beyond is sent away before it is read."""


_FAREWELL = 0.2
"""Seconds in which who is about to be connected is told to go elsewhere, instead of being cut off."""


class Draining(uvicorn.Server):
    """SIGTERM and SIGINT: not ready, no new requests, finish what was accepted, exit with 0. A second one
    leaves at once."""

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self.gate = gate

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        settle()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.sleep(_FAREWELL)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self.force_exit = True
            signal.signal(sig, signal.SIG_DFL)
        self.gate.draining = self.should_exit = True


_SWITCH = 0.001
"""Seconds after which a thread that computes lets another go on; a request waits that long at every turn."""


def serve(gate: Gate, host: str, port: int, drain: float) -> None:
    sys.setswitchinterval(_SWITCH)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s", force=True)
    config = uvicorn.Config(
        gate,
        host=host,
        port=port,
        http=InOnePiece,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=max(1, round(drain)),
        timeout_keep_alive=15,
    )
    listening = _listening(host, port)
    shown = f"[{host}]" if ":" in host else host
    print(f"regard serves on http://{shown}:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    Draining(config, gate).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listening
