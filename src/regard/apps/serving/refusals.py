"""What a client is told when it does not get what it asked for, in the words of its interface."""

import math
from typing import Any

from starlette.responses import JSONResponse, Response

from regard.core.errors import RegardError, RunError

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class Refusal(Exception):  # noqa: N818 - most are the client's doing
    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.field = status, message, code, field
        self.retry_after = retry_after

    def response(self, path: str) -> Response:
        headers = (
            {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}
        )
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.content(path), self.status, headers)

    def content(self, path: str) -> dict[str, Any]:
        """OpenAI's form below /v1, LibreTranslate's elsewhere."""
        if not path.startswith("/v1"):
            return {"error": self.message}
        kind = _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.field, "code": self.code}}


def refusal_of(error: Exception) -> Refusal:
    """What went wrong with a request, as its client may know it."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RunError):
        return Refusal(
            503, "this model cannot be loaded at the moment", code="model_unavailable", retry_after=5.0
        )
    if isinstance(error, RegardError) and error.exit_code == 2:
        return Refusal(400, str(error), code="invalid_input")
    return Refusal(500, "something went wrong on this side; it has been logged", code="internal_error")
