"""Requests read strictly: what the standard library lets pass in JSON (NaN, lone surrogates) is refused."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import pydantic_core
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, ValidationError

from regard.apps.serving.refusals import Refusal

M = TypeVar("M", bound=BaseModel)


class Body(BaseModel):
    """Base of all request bodies. Fields that newer clients send and nobody here knows are passed over."""

    model_config = ConfigDict(
        extra="ignore",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


Endpoint: TypeAlias = Callable[..., Awaitable[Response]]
"""Takes the request and, if it names one ``asked``, the body of that kind."""


class Question(APIRoute):
    """A route that FastAPI describes on its page, and that is read and answered without its help."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint, kind = self.endpoint, get_type_hints(self.endpoint).get("asked")

        async def handle(request: Request) -> Response:
            response: Response = await (
                endpoint(request) if kind is None else endpoint(request, await _asked(kind, request))
            )
            return response

        return handle


def question(router: APIRouter, path: str, **described: Any) -> Callable[[Endpoint], Endpoint]:
    """Decorates an endpoint that texts are sent to."""

    def add(endpoint: Endpoint) -> Endpoint:
        router.add_api_route(path, endpoint, methods=["POST"], route_class_override=Question, **described)
        return endpoint

    return add


async def _asked(kind: type[M], request: Request) -> M:
    form = _form(request)
    if not (form in ("", "application/json") or (form.startswith("application/") and form.endswith("+json"))):
        raise Refusal(400, "Invalid request: send application/json", code="invalid_request")
    try:
        fields = pydantic_core.from_json(await request.body(), allow_inf_nan=False)
    except ValueError as error:
        said = f"Invalid request: JSON decode error: {str(error)[:200]}"
        raise Refusal(400, said, code="invalid_request") from None
    return validated(kind, fields)


def _form(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def form_or_json(request: Request) -> dict[str, Any]:
    """The fields of a body in either form; of a form, the last value of each. Nothing is nothing."""
    raw = await request.body()
    if not raw:
        return dict(parse_qsl(request.url.query, max_num_fields=64))
    kind = _form(request)
    if kind == "application/json":
        try:
            fields = pydantic_core.from_json(raw, allow_inf_nan=False)
        except ValueError as error:
            raise Refusal(400, f"Invalid request: not JSON: {str(error)[:200]}") from None
        if not isinstance(fields, dict):
            raise Refusal(400, "Invalid request: expected an object")
        return fields
    if kind in ("", "application/x-www-form-urlencoded"):
        try:
            return dict(
                parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=64, strict_parsing=True)
            )
        except ValueError:
            raise Refusal(400, "Invalid request: not a form that can be read") from None
    raise Refusal(415, "send application/json or application/x-www-form-urlencoded")


def validated(model: type[M], fields: Any) -> M:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise refused(error.errors(include_input=False, include_url=False)) from None


def said(errors: Any) -> str:
    """What is wrong with a request, without the request itself: it may be large, or no JSON at all."""
    parts = []
    for error in list(errors)[:5]:
        place = ".".join(str(part) for part in error["loc"] if part != "body")[:200]
        why = error.get("ctx", {}).get("error") if error["type"] == "json_invalid" else None
        message = f"{error['msg']}{'' if why is None else f': {why}'}"[:300]
        parts.append(f"{place}: {message}" if place and why is None else message)
    return "Invalid request: " + "; ".join(parts)


def refused(errors: Sequence[Any]) -> Refusal:
    place = [str(part) for part in errors[0]["loc"] if part != "body"] if errors else []
    return Refusal(400, said(errors), code="invalid_request", field=".".join(place)[:100] or None)
