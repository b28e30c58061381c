"""In front of everything: draining, sizes, keys and rates, before a request costs anything; and counting.

Plain ASGI, so that a stream passes through piece by piece and a client that leaves is seen to leave.
"""

import asyncio
import time
from urllib.parse import parse_qs

import pydantic_core
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.apps.serving.keys import Keys, Rates
from regard.apps.serving.limits import Limits
from regard.apps.serving.metrics import Metrics
from regard.apps.serving.refusals import Refusal

OPEN = frozenset({"/healthz", "/readyz", "/health"})
KEY_IN_BODY = frozenset({"/translate", "/detect", "/languages", "/suggest", "/frontend/settings"})
"""LibreTranslate's clients put their key beside the text."""


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        keys: Keys | None,
        rates: Rates | None = None,
        runs: int = 1,
    ) -> None:
        self.app, self.limits, self.metrics, self.keys = app, limits, metrics, keys
        self.rates = rates or Rates()
        self.most = limits.queue * runs + limits.rows
        """Requests inside: as many as may wait, and a batch."""
        self.draining, self.inside = False, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begin, status = time.monotonic(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self.draining:
                    message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        self.metrics.running.inc()
        self.inside += 1
        try:
            try:
                receive = await self._let_in(scope, receive)
            except Refusal as refusal:
                await refusal.response(scope["path"])(scope, receive, sending)
                return
            await self.app(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.running.dec()
            self.inside -= 1
            self.metrics.requests[route, str(status)].inc()
            self.metrics.seconds[route,].observe(time.monotonic() - begin)

    async def _let_in(self, scope: Scope, receive: Receive) -> Receive:
        """What the application receives instead, or a refusal."""
        path = scope["path"]
        if path in OPEN:
            return receive
        if self.draining:
            raise Refusal(503, "this server is about to stop", code="draining", retry_after=5.0)
        if self.inside > self.most:  # sent away before it is read: what cannot be taken on must cost little
            raise Refusal(503, "too many requests are waiting", code="overloaded", retry_after=1.0)
        headers, in_body = Headers(scope=scope), path in KEY_IN_BODY
        if self.keys is not None and not in_body:
            self._admit(scope, _key_of(headers))
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self.limits.body:
            raise self._too_large()
        body = await self._read(receive)
        if self.keys is None:
            self._admit(scope, None)
        elif in_body:
            self._admit(scope, _key_of(headers) or _key_beside_text(scope, headers, body))
        return _replay(body, receive)

    async def _read(self, receive: Receive) -> bytes:
        parts, size = list[bytes](), 0
        try:
            async with asyncio.timeout(self.limits.reading):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the request was not sent in full")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.limits.body:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Refusal(408, f"the request took more than {self.limits.reading:g} s to arrive") from None

    def _too_large(self) -> Refusal:
        return Refusal(413, f"requests may have {self.limits.body:,} bytes", code="request_too_large")

    def _admit(self, scope: Scope, secret: str | None) -> None:
        """By key where there are keys, by address otherwise."""
        client, per_minute = str((scope.get("client") or ("?",))[0]), self.limits.per_minute
        if self.keys is not None:
            key = self.keys.owner(secret)
            if key is None:
                libre = scope["path"] in KEY_IN_BODY
                said = "Invalid API key" if secret else "Please contact the server operator to get an API key"
                raise Refusal(403 if libre else 401, said, code="invalid_api_key")
            client, per_minute = f"key {key.name}", key.per_minute or per_minute
        if per_minute is None:
            return
        wait = self.rates.wait(client, per_minute)
        if wait:
            said = f"Slowdown: {per_minute} requests a minute are allowed"
            raise Refusal(429, said, code="rate_limit_exceeded", retry_after=wait)


def _key_of(headers: Headers) -> str | None:
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret:
        return secret.strip()
    return headers.get("x-api-key")


def _key_beside_text(scope: Scope, headers: Headers, body: bytes) -> str | None:
    if "json" in headers.get("content-type", ""):
        try:
            value = pydantic_core.from_json(body)
        except ValueError:
            return None
        key = value.get("api_key") if isinstance(value, dict) else None
        return None if key is None else str(key)
    for source in (body, scope.get("query_string", b"")):
        try:
            if found := parse_qs(source.decode(), max_num_fields=64).get("api_key"):
                return str(found[0])
        except ValueError:
            continue
    return None


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
