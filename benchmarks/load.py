"""Clients for a server under measurement: light enough not to be what is measured.

Requests are written down beforehand and replies are only searched for the answer that is wanted: a request
costs its client a fraction of what it costs the server, and ``Seen.generator`` tells how much.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import pydantic_core
import uvloop


class Question(NamedTuple):
    """A request as it is sent, and what its reply must hold."""

    sent: bytes
    wanted: bytes


def questions(
    path: str, fields: Sequence[dict[str, Any]], answers: Sequence[str], host: str = "127.0.0.1"
) -> list[Question]:
    """One for each of ``fields``, to be answered by the text beside it."""
    return [
        Question(_request(path, host, json.dumps(some).encode()), pydantic_core.to_json(answer))
        for some, answer in zip(fields, answers, strict=True)
    ]


def _request(path: str, host: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class Seen:
    """What became of many requests."""

    seconds: float = 0.0
    generator: float = 0.0
    """Seconds of processor that the clients themselves took."""
    answered: list[float] = field(default_factory=list)
    """Latency of each, in seconds …"""
    refused: list[float] = field(default_factory=list)
    """… and of those that were sent away with 503."""
    wrong: int = 0
    """Other answers than were wanted, or other failures."""
    lost: int = 0
    """Not answered at all."""

    @property
    def requests(self) -> int:
        return len(self.answered) + len(self.refused) + self.wrong + self.lost

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
            "generator_ms_per_request": round(1000 * self.generator / max(1, self.requests), 3),
            "generator_cores": round(self.generator / self.seconds, 2),
        }


def spread(seconds: Sequence[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    return {
        name: round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)
        for name, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("most", 1.0))
    }


class Connection(asyncio.Protocol):
    """Kept open between requests, as clients do; ``then`` is told of every end."""

    def __init__(self, seen: Seen, then: Callable[["Connection"], None]) -> None:
        self.seen, self.then = seen, then
        self._asked: Question | None = None
        self._begin, self._got = 0.0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by descent

    def ask(self, question: Question) -> None:
        self._asked, self._got, self._begin = question, b"", time.perf_counter()
        self.transport.write(question.sent)

    def data_received(self, data: bytes) -> None:
        got = self._got = self._got + data if self._got else data
        head = got.find(b"\r\n\r\n")
        if head < 0 or len(got) < head + 4 + _length(got, head):
            return
        asked, took = self._asked, time.perf_counter() - self._begin
        assert asked is not None, "an answer that nobody asked for"
        self._asked = None
        if got.startswith(b"HTTP/1.1 200") and got.find(asked.wanted, head) >= 0:
            self.seen.answered.append(took)
        elif got.startswith(b"HTTP/1.1 503"):
            self.seen.refused.append(took)
        else:
            self.seen.wrong += 1
        self.then(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self._asked is not None:
            self._asked = None
            self.seen.lost += 1
            self.then(self)


def _length(got: bytes, head: int) -> int:
    name = b"content-length: "
    begin = got.find(name, 0, head)
    assert begin >= 0, "a reply that does not tell its length"
    return int(got[begin + len(name) : got.find(b"\r\n", begin)])


class Crowd:
    """Many connections to one place."""

    def __init__(self, place: str, then: Callable[[Connection], None]) -> None:
        self.host, _, port = place.partition(":")
        self.port, self.then, self.seen = int(port), then, Seen()
        self._all = list[Connection]()

    async def another(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: Connection(self.seen, self.then), self.host, self.port)
        self._all.append(made)
        return made

    def close(self) -> None:
        for connection in self._all:
            connection.transport.close()


def closed(place: str, asked: Sequence[Question], clients: int, seconds: float = 0.0, count: int = 0) -> Seen:
    """So many clients, each asking again as soon as it is answered, for a time or so many requests."""

    async def ask() -> Seen:
        turn, busy, done = 0, 0, asyncio.Event()
        end = time.perf_counter() + seconds

        def next_one(connection: Connection) -> None:
            nonlocal turn, busy
            more = turn < count if count else time.perf_counter() < end
            if more and not connection.transport.is_closing():
                turn += 1
                connection.ask(asked[turn % len(asked)])
                return
            busy -= 1
            if not busy:
                done.set()

        crowd = Crowd(place, next_one)
        connections = [await crowd.another() for _ in range(clients)]
        busy, begin = clients, time.perf_counter()
        end = begin + seconds
        for connection in connections:
            next_one(connection)
        await done.wait()
        crowd.seen.seconds = time.perf_counter() - begin
        crowd.close()
        return crowd.seen

    return _counted(ask)


def opened(place: str, asked: Sequence[Question], rate: float, seconds: float, seed: int = 1) -> Seen:
    """Requests that come at random, so many a second, whether or not those before are answered."""

    async def ask() -> Seen:
        rng, idle, done = random.Random(seed), list[Connection](), asyncio.Event()
        under_way, due, number = 0, 0.0, 0

        def back(connection: Connection) -> None:
            nonlocal under_way
            under_way -= 1
            if not connection.transport.is_closing():
                idle.append(connection)
            if not under_way:
                done.set()

        crowd = Crowd(place, back)
        begin = time.perf_counter()
        while (due := due + rng.expovariate(rate)) < seconds:
            if (early := begin + due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            number, under_way = number + 1, under_way + 1
            done.clear()
            # A server hangs up on who has not asked for a while.
            while idle and idle[-1].transport.is_closing():
                idle.pop()
            connection = idle.pop() if idle else await crowd.another()
            connection.ask(asked[number % len(asked)])
        if under_way:
            await done.wait()
        crowd.seen.seconds = time.perf_counter() - begin
        crowd.close()
        return crowd.seen

    return _counted(ask)


def _counted(ask: Callable[[], Any]) -> Seen:
    begin = time.process_time()
    seen: Seen = uvloop.run(ask())
    seen.generator = time.process_time() - begin
    return seen
