"""Questions go straight to those who answer them; pages take the long way through FastAPI.

What FastAPI does for every request (routes tried in turn, dependencies, layers that catch errors) costs more
of the processor than all that a question needs.
"""

from collections.abc import Callable, Iterable

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.apps.serving.strict import Question


class Switchboard:
    def __init__(
        self, app: ASGIApp, questions: Iterable[Question], refuse: Callable[[Request, Exception], Response]
    ) -> None:
        """``refuse`` makes a reply of whatever goes wrong."""
        self.app, self.refuse = app, refuse
        self._lines = {route.path: (route, route.get_route_handler()) for route in questions}

    @property
    def paths(self) -> set[str]:
        return set(self._lines)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = self._lines.get(scope["path"]) if scope.get("method") == "POST" else None
        if line is None:
            await self.app(scope, receive, send)
            return
        scope["route"], handle = line
        request = Request(scope, receive, send)
        try:
            response = await handle(request)
        except Exception as error:
            response = self.refuse(request, error)
        await response(scope, receive, send)
