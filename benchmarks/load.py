"""Clients for a server under measurement: light enough not to be what is measured."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """What became of many requests."""

    seconds: float = 0.0
    answered: list[float] = field(default_factory=list)
    """Latency of each, in seconds …"""
    refused: list[float] = field(default_factory=list)
    """… and of those that were sent away with 503."""
    wrong: int = 0
    """Other answers than to what was asked, or other failures."""
    lost: int = 0
    """Not answered at all."""

    @property
    def rate(self) -> float:
        return len(self.answered) / self.seconds

    def summary(self) -> dict[str, Any]:
        return {
            "requests_per_second": round(self.rate, 1),
            "answered": len(self.answered),
            "refused": len(self.refused),
            "wrong": self.wrong,
            "lost": self.lost,
            "latency_ms": spread(self.answered),
            "refusal_ms": spread(self.refused),
        }


def spread(seconds: Sequence[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    return {
        name: round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)
        for name, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("most", 1.0))
    }


class Connection:
    """Kept open between requests, as clients do."""

    def __init__(self, place: str) -> None:
        self.host, _, port = place.partition(":")
        self.port = int(port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, fields: dict[str, Any]) -> tuple[int, Any]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._streams
        body = json.dumps(fields).encode()
        head = f"POST /v1/run HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status = int((await reader.readline()).split()[1])
        length = 0
        while (line := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return status, json.loads(await reader.readexactly(length))

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def one(connection: Connection, text: str, settings: dict[str, Any], seen: Seen) -> None:
    begin = time.perf_counter()
    try:
        status, reply = await connection.ask({"text": text, **settings})
    except (OSError, ValueError, IndexError, asyncio.IncompleteReadError):
        seen.lost += 1
        connection.close()
        return
    took = time.perf_counter() - begin
    if status == 200 and reply["answers"][0]["source"] == text:
        seen.answered.append(took)
    elif status == 503:
        seen.refused.append(took)
    else:
        seen.wrong += 1


async def closed(
    place: str,
    texts: Sequence[str],
    settings: dict[str, Any],
    clients: int,
    seconds: float = 0.0,
    count: int = 0,
) -> Seen:
    """So many clients, each asking again as soon as it is answered, for a time or so many requests."""
    seen, begin, turn = Seen(), time.perf_counter(), 0

    async def client() -> None:
        nonlocal turn
        connection = Connection(place)
        while (turn < count) if count else (time.perf_counter() - begin < seconds):
            turn += 1
            await one(connection, texts[turn % len(texts)], settings, seen)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    seen.seconds = time.perf_counter() - begin
    return seen


async def opened(
    place: str, texts: Sequence[str], settings: dict[str, Any], rate: float, seconds: float, seed: int = 1
) -> Seen:
    """Requests that come at random, so many a second, whether or not those before are answered."""
    rng, seen, idle = random.Random(seed), Seen(), list[Connection]()
    begin, due, number, under_way = time.perf_counter(), 0.0, 0, set[asyncio.Task[None]]()

    async def ask(text: str) -> None:
        connection = idle.pop() if idle else Connection(place)
        await one(connection, text, settings, seen)
        idle.append(connection)

    while (due := due + rng.expovariate(rate)) < seconds:
        await asyncio.sleep(max(0.0, begin + due - time.perf_counter()))
        number += 1
        task = asyncio.create_task(ask(texts[number % len(texts)]))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    seen.seconds = time.perf_counter() - begin
    for connection in idle:
        connection.close()
    return seen
