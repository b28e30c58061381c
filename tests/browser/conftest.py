"""A small run, served or kept as a file, in a real browser: Debian's Chromium, driven by Playwright."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.apps.inspector import Inspected
from regard.apps.training import train
from tests.apps.toys import pairs, texts, toy

_QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


def _chromium() -> str:
    """Found, or in CI installed; elsewhere the tests are skipped, and say why."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-qq", "-y", "chromium"], check=True)
        if found := shutil.which("chromium"):
            return found
    if os.environ.get("CI"):
        pytest.fail("CI has no chromium and cannot install one")
    pytest.skip("no chromium on PATH: install it to test the inspector's page")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Closed with its module: while it is open, nothing else in this process can have an event loop."""
    path = _chromium()
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=list(_QUIET))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "reversing"
    train(toy("transformer"), pairs(160), folder, valid=pairs(24, seed=1), steps=60, seed=3)
    return folder


@pytest.fixture(scope="session")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model: no source, positions that are learned."""
    folder = tmp_path_factory.mktemp("browser") / "writing"
    train(toy("gpt_tiny"), texts(40), folder, valid=texts(8, seed=1), steps=20, seed=3)
    return folder


@pytest.fixture(scope="session")
def bahdanau_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "recurrent"
    train(toy("bahdanau"), pairs(100), folder, valid=pairs(24, seed=1), steps=10, seed=3)
    return folder


@pytest.fixture(scope="session")
def served(run_folder: Path, other_folder: Path, bahdanau_folder: Path) -> Iterator[Callable[..., str]]:
    """``served("reversing")`` is the address of an inspector over that run; each is started once."""
    import uvicorn

    from regard.apps.inspector_server import inspector_app

    folders = {"reversing": run_folder, "writing": other_folder, "recurrent": bahdanau_folder}
    started: dict[tuple[str, ...], tuple[Any, threading.Thread, str]] = {}

    def address(*names: str) -> str:
        if names not in started:
            app = inspector_app([Inspected(folders[name]) for name in names])
            server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
            thread = threading.Thread(target=server.run, daemon=True)
            thread.start()
            while not server.started:
                time.sleep(0.02)
            port = server.servers[0].sockets[0].getsockname()[1]
            started[names] = (server, thread, f"http://127.0.0.1:{port}/")
        return started[names][2]

    yield address
    for server, thread, _ in started.values():
        server.should_exit = True
        thread.join(timeout=10)


@pytest.fixture
def look(browser: Any, served: Callable[..., str]) -> Iterator[Callable[..., Any]]:
    """A page that is ready; when the test ends nothing may have been written to its console as an error."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True)
    complaints: list[str] = []

    def opened(*names: str, state: str = "", address: str | None = None) -> Any:
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda said: (
                complaints.append(said.text) if said.type == "error" and "422" not in said.text else None
            ),
        )
        page.goto((address or served(*(names or ("reversing",)))) + state)
        page.wait_for_selector("body[data-ready]")
        return page

    yield opened
    context.close()
    assert not complaints
