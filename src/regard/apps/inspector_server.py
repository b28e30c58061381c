"""The inspector as a web application, for one or two runs it was given and nothing else.

It can stand alone (``regard look``) or be mounted by another application. All addresses in its page are
relative, so that it does not matter where.
"""

import json
import math
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from regard.apps.inspector import Inspected, question_of
from regard.core.errors import RegardError
from regard.inspection.inspector import inspector_page
from regard.inspection.look import Question

LOOPBACK = "127.0.0.1"
_NAMES_OF_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "testserver"})
_LARGEST_BODY = 1_000_000

RunNumber = Annotated[int, Field(ge=0, le=1)]


class Asked(BaseModel):
    """What every question has: of which run, and about which text."""

    model_config = ConfigDict(extra="forbid")

    run: RunNumber = 0
    text: str = ""
    target: str | None = None
    begin: list[Annotated[int, Field(ge=0)]] = Field(default=[], max_length=1024)
    interventions: list[dict[str, Any]] = Field(default=[], max_length=256)

    def question(self) -> Question:
        return question_of(self.text, self.target, self.begin, self.interventions)


class AskedSteps(Asked):
    attention: str


class AskedWords(BaseModel):
    model_config = ConfigDict(extra="forbid")

    run: RunNumber = 0
    sentences: list[str] = Field(max_length=1000)


class AskedText(BaseModel):
    model_config = ConfigDict(extra="forbid")

    run: RunNumber = 0
    text: str


def inspector_app(inspected: Sequence[Inspected], hosts: Sequence[str] = ()) -> FastAPI:
    """``hosts``: names by which it may be called beside those of this machine."""
    app = FastAPI(title="regard inspector", docs_url=None, redoc_url=None, openapi_url=None)
    known = _NAMES_OF_LOOPBACK | set(hosts)

    def one(number: int) -> Inspected:
        if number >= len(inspected):
            raise HTTPException(404, f"there is no run {number}")
        return inspected[number]

    @app.middleware("http")
    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        refusal = refused(request, known)
        if refusal is not None:
            return said(refusal, 403)
        if int(request.headers.get("content-length") or 0) > _LARGEST_BODY:
            return said(f"a question has at most {_LARGEST_BODY:,} bytes", 413)
        response = await go_on(request)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"
        return response

    @app.exception_handler(RegardError)
    async def for_people(_: Request, error: RegardError) -> Response:
        return said(str(error), 422)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return said(f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}", 422)

    @app.exception_handler(HTTPException)
    async def refused_by_address(_: Request, error: HTTPException) -> Response:
        return said(str(error.detail), error.status_code)

    @app.exception_handler(Exception)
    async def unforeseen(_: Request, error: Exception) -> Response:
        return said(f"this should not have happened: {type(error).__name__}: {error}", 500)

    @app.get("/")
    def page() -> HTMLResponse:
        data = {"mode": "server", "runs": [run.about() for run in inspected]}
        names = " · ".join(run.name for run in inspected)
        return HTMLResponse(inspector_page(f"regard · {names}", data, served=True))

    @app.post("/api/look")
    def look(asked: Asked) -> Response:
        return answered(one(asked.run).look(asked.question()))

    @app.post("/api/steps")
    def steps(asked: AskedSteps) -> Response:
        return answered(one(asked.run).steps(asked.question(), asked.attention))

    @app.post("/api/importance")
    def importance(asked: Asked) -> Response:
        return answered(one(asked.run).importance(asked.question()))

    @app.post("/api/words")
    def words(asked: AskedWords) -> Response:
        return answered(one(asked.run).words(asked.sentences))

    @app.post("/api/cuts")
    def cuts(asked: AskedText) -> Response:
        return answered(one(asked.run).cuts(asked.text))

    @app.post("/api/probe")
    def probe(asked: AskedText) -> Response:
        return answered(one(asked.run).probe(asked.text))

    @app.get("/api/positions/{number}")
    def positions(number: int) -> Response:
        return answered(one(number).positions())

    @app.get("/api/facts/{number}")
    def facts(number: int) -> Response:
        return answered(one(number).facts())

    return app


def refused(request: Request, known: frozenset[str]) -> str | None:
    """Another site must not speak to it through a visitor's browser, by name or by script."""
    host = request.headers.get("host", "")
    name = host.rsplit(":", 1)[0].strip("[]") if not host.endswith("]") else host.strip("[]")
    if name not in known:
        return f"this inspector is not called {host!r}"
    origin = request.headers.get("origin")
    if origin is not None and origin.split("://")[-1] != host:
        return f"this inspector does not answer pages of {origin!r}"
    return None


def answered(value: Any) -> Response:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # an impossible token has a log-probability of −∞, which JSON cannot say
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")


def said(message: str, status: int) -> Response:
    return Response(
        json.dumps({"error": message}, ensure_ascii=False), status_code=status, media_type="application/json"
    )


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(1e9, value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def serve(inspected: Sequence[Inspected], host: str, port: int, ready: Callable[[str], None]) -> None:
    """Until interrupted. ``port`` 0 takes a free one; ``ready`` is told the address once it listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen()
    shown = f"[{host}]" if ":" in host else host
    ready(f"http://{shown}:{listening.getsockname()[1]}/")
    config = uvicorn.Config(inspector_app(inspected, [host]), log_level="warning", access_log=False)
    with suppress(KeyboardInterrupt):  # how it is ended
        uvicorn.Server(config).run(sockets=[listening])
