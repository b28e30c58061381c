"""Small trained runs behind real sockets."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn

from regard.apps.serving.assembly import Wanted, application
from regard.apps.serving.gate import Gate
from regard.apps.serving.shelf import Offer
from regard.apps.training import train
from tests.apps.toys import examples, toy

WEB = httpx.Client(timeout=60, trust_env=False)
"""A client of its own for every request would take longer than the request."""


class Served(NamedTuple):
    url: str
    gate: Gate


@contextmanager
def serving(wanted: Wanted, **more: Any) -> Iterator[Served]:
    """The application on a port of this machine, in a thread."""
    gate = application(wanted, **more)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(gate, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        try:
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", gate)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def trained(name: str, folder: Path, *settings: str, steps: int = 60) -> Path:
    data, valid = examples(name, 120), examples(name, 12, 1)
    train(toy(name, *settings), data, folder, valid=valid, steps=steps, seed=3)
    return folder


@pytest.fixture(scope="session")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model."""
    return trained("gpt_tiny", tmp_path_factory.mktemp("serving") / "writer", steps=30)


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tells first letters apart; its classes stand for languages."""
    return trained("classifier", tmp_path_factory.mktemp("serving") / "judge", steps=8)


@pytest.fixture(scope="session")
def offers(run_folder: Path, writer: Path, judge: Path) -> list[Offer]:
    return [Offer("reverse", run_folder, ("ab", "ba")), Offer("writer", writer), Offer("judge", judge)]


@pytest.fixture(scope="session")
def server(offers: list[Offer]) -> Iterator[Served]:
    with serving(Wanted(offers, detector="judge")) as served:
        yield served


@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    WEB.close()
