"""The short way of a question through the server, and of its answers back to the event loop."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from regard.apps.serving.assembly import Wanted, application
from regard.apps.serving.post import Over, Post
from regard.apps.serving.refusals import Refusal, refusal_of
from regard.apps.serving.shelf import Offer
from regard.apps.serving.strict import Body, Question, question
from regard.apps.serving.switchboard import Switchboard
from tests.apps.serving.conftest import WEB, Served


class Name(Body):
    name: str


async def long_way(scope: Scope, receive: Receive, send: Send) -> None:
    await Response("the long way", 404)(scope, receive, send)


def switchboard() -> Switchboard:
    router = APIRouter(prefix="/v1")

    @question(router, "/greet")
    async def greet(request: Request, asked: Name) -> Response:
        if asked.name == "nobody":
            raise Refusal(418, "who?")
        if asked.name == "broken":
            raise ValueError
        return Response(f"hello {asked.name}")

    routes = [route for route in router.routes if isinstance(route, Question)]
    return Switchboard(long_way, routes, lambda request, error: refusal_of(error).response(request.url.path))


def asked(method: str, path: str, **more: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(switchboard())
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path, **more)

    return asyncio.run(ask())


def test_questions_go_straight_to_their_endpoint_and_all_else_does_not() -> None:
    assert asked("POST", "/v1/greet", json={"name": "anna"}).text == "hello anna"
    assert asked("POST", "/v1/greet", content=b'{"name": "anna"}').text == "hello anna"
    for method, path in (("GET", "/v1/greet"), ("POST", "/v1/greet/"), ("POST", "/greet")):
        assert asked(method, path).text == "the long way"


@pytest.mark.parametrize(
    ("status", "said", "more"),
    [
        (418, "who?", {"json": {"name": "nobody"}}),
        (500, "something went wrong", {"json": {"name": "broken"}}),
        (400, "name: Field required", {"json": {}}),
        (400, "JSON decode error", {"content": b"{"}),
        (400, "JSON decode error", {"content": b""}),
        (400, "application/json", {"content": b"<xml/>", "headers": {"content-type": "text/xml"}}),
    ],
)
def test_whatever_goes_wrong_has_the_form_of_the_interface(
    status: int, said: str, more: dict[str, Any]
) -> None:
    reply = asked("POST", "/v1/greet", **more)
    assert reply.status_code == status
    assert said in reply.json()["error"]["message"]


def test_all_that_the_page_says_can_be_asked_takes_the_short_way(server: Served, run_folder: Path) -> None:
    paths = WEB.get(f"{server.url}/openapi.json").json()["paths"]
    posts = {path for path, methods in paths.items() if "post" in methods}
    assert posts == {"/v1/run", "/v1/completions", "/v1/embeddings", "/translate", "/detect"}
    board = application(Wanted([Offer("one", run_folder)])).app
    assert isinstance(board, Switchboard)
    assert board.paths == posts
    bodies = {path: paths[path]["post"]["requestBody"]["content"] for path in posts}
    assert bodies["/v1/run"]["application/json"]["schema"] == {"$ref": "#/components/schemas/RunRequest"}
    assert set(bodies["/translate"]) == {"application/json", "application/x-www-form-urlencoded"}


class CountingLoop(asyncio.SelectorEventLoop):
    calls = 0

    def call_soon_threadsafe(self, *given: Any, **more: Any) -> asyncio.Handle:
        self.calls += 1
        return super().call_soon_threadsafe(*given, **more)


def test_answers_that_come_together_wake_the_loop_once() -> None:
    post, loop = Post(), CountingLoop()

    def settle(futures: Sequence[Future[None]]) -> None:
        for future in futures:
            future.set_result(None)

    async def wait(count: int) -> None:
        futures = [Future[None]() for _ in range(count)]
        overs = [Over(asyncio.get_running_loop()) for _ in futures]
        for future, over in zip(futures, overs, strict=True):
            future.add_done_callback(lambda _, over=over: post.tell(over))  # type: ignore[misc]
        thread = threading.Thread(target=settle, args=(futures,))
        thread.start()
        thread.join()  # the loop is busy with this meanwhile
        await asyncio.wait_for(asyncio.gather(*(over.waiting for over in overs)), 20)

    try:
        for _ in range(2):
            loop.calls = 0
            loop.run_until_complete(wait(30))
            assert loop.calls == 1
    finally:
        loop.close()
