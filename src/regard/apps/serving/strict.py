"""Requests read strictly: what the standard library lets pass in JSON (NaN, lone surrogates) is refused."""

import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import pydantic_core
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
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


class StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return pydantic_core.from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise json.JSONDecodeError(str(error)[:200], "", 0) from None


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


async def form_or_json(request: Request) -> dict[str, Any]:
    """The fields of a body in either form; of a form, the last value of each. Nothing is nothing."""
    raw = await request.body()
    if not raw:
        return dict(parse_qsl(request.url.query, max_num_fields=64))
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
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


def validated(model: type[M], fields: dict[str, Any]) -> M:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise Refusal(400, said(error.errors(include_input=False, include_url=False))) from None


def said(errors: Any) -> str:
    """What is wrong with a request, without the request itself: it may be large, or no JSON at all."""
    parts = []
    for error in list(errors)[:5]:
        place = ".".join(str(part) for part in error["loc"] if part != "body")[:200]
        why = error.get("ctx", {}).get("error") if error["type"] == "json_invalid" else None
        message = f"{error['msg']}{'' if why is None else f': {why}'}"[:300]
        parts.append(f"{place}: {message}" if place and why is None else message)
    return "Invalid request: " + "; ".join(parts)


def refused(error: RequestValidationError) -> Refusal:
    first = next(iter(error.errors()), None)
    place = [str(part) for part in first["loc"][1:]] if first else []
    return Refusal(400, said(error.errors()), code="invalid_request", field=".".join(place)[:100] or None)
