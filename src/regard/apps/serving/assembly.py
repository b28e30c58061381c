"""The application: all interfaces over one set of runs, with one way to refuse."""

import asyncio
import html
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from regard.apps.serving import libretranslate, openai, own
from regard.apps.serving.asking import Asking
from regard.apps.serving.batching import Batcher, Done, Size
from regard.apps.serving.gate import Gate
from regard.apps.serving.keys import Keys
from regard.apps.serving.limits import Limits
from regard.apps.serving.metrics import Metrics
from regard.apps.serving.refusals import Refusal, refusal_of
from regard.apps.serving.shelf import Offer, Shelf
from regard.apps.serving.strict import Question, refused
from regard.apps.serving.switchboard import Switchboard
from regard.apps.session import Run
from regard.apps.session import load as load_run
from regard.core.errors import UsageError, nearest

log = logging.getLogger("regard.serving")
_LOOK_EVERY = 1.0
"""Seconds between two looks at the folders of loaded runs."""


@dataclass(frozen=True)
class Wanted:
    """What a server is to offer."""

    offers: Sequence[Offer]
    limits: Limits = field(default_factory=Limits)
    keys: Path | None = None
    detector: str | None = None
    """The run that tells languages apart."""
    preload: bool = False
    loaded: int | None = None
    """Runs in memory at once."""


def application(
    wanted: Wanted,
    load: Callable[[Path], Run] = load_run,
    look: Callable[[Shelf], ASGIApp] | None = None,
) -> Gate:
    """``look`` makes a page of its own over the same runs, served under /look."""
    limits, metrics = wanted.limits, Metrics()
    shelf = Shelf(wanted.offers, load, lambda name: _batcher(name, limits, metrics), metrics, wanted.loaded)
    if wanted.detector is not None and wanted.detector not in shelf.offers:
        raise UsageError(f"--detect {wanted.detector}: no such run{nearest(wanted.detector, shelf.offers)}")
    metrics.gauge("regard_waiting_texts", "Texts that wait.", lambda: _each(shelf, lambda b: b.waiting))
    metrics.gauge("regard_running_texts", "Texts being answered.", lambda: _each(shelf, lambda b: b.running))
    metrics.gauge("regard_loaded", "Runs in memory.", lambda: _each(shelf, lambda _: 1))
    keys = None if wanted.keys is None else Keys(wanted.keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if wanted.preload or len(wanted.offers) == 1:
            await shelf.load_all()
        looking = asyncio.create_task(shelf.keep_looking(_LOOK_EVERY))
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.to_thread(shelf.close, limits.drain)

    app = FastAPI(
        title="regard",
        description="Sequence models behind the interfaces of LibreTranslate and OpenAI, and their own.",
        version=version("regard"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        strict_content_type=False,
        redirect_slashes=False,
        responses={
            code: {"description": meaning, "content": {"application/json": {"schema": {"type": "object"}}}}
            for code, meaning in _REFUSALS.items()
        },
    )
    asking = Asking(shelf, limits, metrics)
    interfaces = (
        own.routes(asking),
        openai.routes(asking),
        libretranslate.routes(asking, wanted.detector, keys is not None),
    )
    for interface in interfaces:
        app.include_router(interface)
    questions = [route for one in interfaces for route in one.routes if isinstance(route, Question)]
    gate = Gate(Switchboard(app, questions, _refuse), limits, metrics, keys, runs=len(wanted.offers))
    _add_plain_routes(app, gate, metrics)
    _add_refusals(app)
    if look is not None:
        app.mount("/look", look(shelf))
    return gate


_REFUSALS: dict[int | str, str] = {
    400: "The request is not understood, or asks for too much.",
    401: "A key is needed.",
    403: "A key is needed.",
    404: "There is no such model or page.",
    405: "Not with this method.",
    408: "Not in the time the client gave.",
    413: "The request is too large.",
    415: "Neither JSON nor a form.",
    429: "Too many requests a minute; see Retry-After.",
    503: "Too many requests wait, or the server is about to stop; see Retry-After.",
    504: "Not in the time the server gives.",
}


def _batcher(name: str, limits: Limits, metrics: Metrics) -> Batcher:
    def count(done: Done) -> None:
        metrics.batch_texts[name,].observe(done.texts)
        metrics.batch_seconds[name,].observe(done.seconds)

    size = Size(
        limits.budget,
        limits.rows,
        limits.linger,
        limits.queue,
        limits.deadline,
        limits.crowd,
        limits.patience,
    )
    return Batcher(name, size, count)


def _each(shelf: Shelf, value: Callable[[Batcher], float]) -> list[tuple[str, float]]:
    return [(name, float(value(desk.batcher))) for name, desk in shelf.desks.items()]


def _add_plain_routes(app: FastAPI, gate: Gate, metrics: Metrics) -> None:
    @app.get("/healthz", tags=["Operation"])
    async def healthz() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["Operation"])
    async def readyz() -> Response:
        """Requests are taken; not any more once the server is about to stop."""
        ready = not gate.draining
        return JSONResponse({"status": "ready" if ready else "draining"}, 200 if ready else 503)

    @app.get("/metrics", tags=["Operation"])
    async def page() -> Response:
        """For Prometheus."""
        return Response(metrics.page(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(_docs(app.openapi()))

    @app.get("/", include_in_schema=False)
    async def start() -> RedirectResponse:
        return RedirectResponse("/docs")


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return refused(error.errors()).response(request.url.path)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        response = Refusal(error.status_code, str(error.detail)).response(request.url.path)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Refusal)
    @app.exception_handler(Exception)
    async def failure(request: Request, error: Exception) -> Response:
        return _refuse(request, error)


def _refuse(request: Request, error: Exception) -> Response:
    found = refusal_of(error)
    if found.status == 500:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return found.response(request.url.path)


def _docs(schema: dict[str, Any]) -> str:
    """A page of its own: the usual ones are fetched from elsewhere."""
    parts = [
        f"<h1>{html.escape(schema['info']['title'])}</h1><p>{html.escape(schema['info']['description'])}</p>"
    ]
    for path, methods in schema["paths"].items():
        for method, told in methods.items():
            shown = html.escape(json.dumps(told.get("requestBody") or told.get("parameters") or {}, indent=1))
            said = html.escape(told.get("description") or told.get("summary", ""))
            parts.append(
                f"<details><summary><code>{method.upper()} {html.escape(path)}</code> {said}</summary>"
                f"<pre>{shown}</pre></details>"
            )
    models = schema.get("components", {}).get("schemas", {})
    for name, model in models.items():
        shown = html.escape(json.dumps(model, indent=1))
        parts.append(f"<details><summary>{html.escape(name)}</summary><pre>{shown}</pre></details>")
    style = "body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto}"
    link = '<p>For machines: <a href="/openapi.json">/openapi.json</a></p>'
    page = "".join([*parts, link])
    return f"<!doctype html><meta charset=utf-8><title>regard</title><style>{style}</style>{page}"
