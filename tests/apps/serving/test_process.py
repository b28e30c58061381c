"""The server as a process: SIGTERM finishes what was accepted, kill -9 costs only what was under way."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from regard.apps.session import load
from tests.apps.conftest import Command
from tests.apps.toys import pairs

WORDS = [source for source, _ in pairs(200, seed=7)]


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`regard serve …` on any free port; ended by force if it is still there."""
    command = [sys.executable, "-m", "regard.apps", "serve", *map(str, arguments), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as running:
        try:
            assert running.stderr is not None
            place = re.search(r"http://(\S+)", running.stderr.readline())
            assert place is not None
            # Somebody must read on, or the process waits for room to write.
            threading.Thread(target=running.stderr.read, daemon=True).start()
            wait_until_ready(place[1])
            yield running, place[1]
        finally:
            if running.poll() is None:
                running.kill()


def wait_until_ready(place: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if post(place, "GET", "/readyz")[0] == 200:
                return
        except OSError:
            time.sleep(0.02)
    raise AssertionError("the server does not get ready")


def post(place: str, method: str, path: str, fields: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(place, timeout=60)
    try:
        connection.request(method, path, json.dumps(fields), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


class Crowd:
    """Clients that ask until they are sent away; every answer is kept with its question."""

    def __init__(self, place: str, size: int) -> None:
        self.place, self.answers = place, list[tuple[str, str]]()
        self.refused, self.broken = 0, list[str]()
        self.threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(size)]
        for thread in self.threads:
            thread.start()

    def _ask(self, number: int) -> None:
        for turn in range(10_000):
            word = WORDS[(number * 31 + turn) % len(WORDS)]
            connection = http.client.HTTPConnection(self.place, timeout=60)
            try:
                connection.connect()
            except OSError:  # nobody listens any more: not accepted
                self.refused += 1
                return
            try:
                body = json.dumps({"text": word})
                connection.request("POST", "/v1/run", body, {"Content-Type": "application/json"})
                reply = connection.getresponse()
                found = json.loads(reply.read())
            except (OSError, http.client.HTTPException) as error:
                self.broken.append(f"{type(error).__name__}: {error}")
                return
            finally:
                connection.close()
            if reply.status == 503:
                self.refused += 1
                return
            assert reply.status == 200, found
            self.answers.append((word, found["answers"][0]["text"]))

    def join(self) -> None:
        for thread in self.threads:
            thread.join(60)


def test_sigterm_finishes_what_was_accepted(run_folder: Path) -> None:
    offline = dict(zip(WORDS, load(run_folder)(WORDS), strict=True))
    with process(run_folder) as (running, place):
        big: list[tuple[int, Any]] = []
        asked = {"texts": WORDS[:100], "beam": 16}
        asking = threading.Thread(target=lambda: big.append(post(place, "POST", "/v1/run", asked)))
        crowd = Crowd(place, 8)
        while len(crowd.answers) < 20:
            time.sleep(0.005)
        asking.start()
        while "regard_requests_running 0" in metrics(place):
            time.sleep(0.005)
        time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        crowd.join()
        asking.join()
    assert big[0][0] in (200, 503)  # whole, or not taken at all
    if big[0][0] == 200:
        assert len(big[0][1]["answers"]) == 100
    assert all(offline[word] == answer for word, answer in crowd.answers)
    # Who was being connected when nobody listened any more was not accepted.
    assert crowd.refused + len(crowd.broken) == 8
    assert not [one for one in crowd.broken if not one.startswith("ConnectionReset")]


def metrics(place: str) -> str:
    connection = http.client.HTTPConnection(place, timeout=60)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@pytest.mark.slow
def test_kill_and_restart(run_folder: Path) -> None:
    with process(run_folder) as (running, place):
        crowd = Crowd(place, 4)
        while len(crowd.answers) < 10:
            time.sleep(0.005)
        running.kill()
        running.wait()
        crowd.join()
    offline = dict(zip(WORDS, load(run_folder)(WORDS), strict=True))
    assert all(offline[word] == answer for word, answer in crowd.answers)
    assert len(crowd.broken) + crowd.refused == 4  # what each client had under way, and no more
    port = place.rpartition(":")[2]
    with process(run_folder, "--port", port) as (running, again):
        assert post(again, "POST", "/v1/run", {"text": "abc"})[1]["answers"][0]["text"] == load(run_folder)(
            "abc"
        )
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


@pytest.mark.slow
def test_twenty_drains_lose_nothing(run_folder: Path) -> None:
    for _ in range(20):
        test_sigterm_finishes_what_was_accepted(run_folder)


def test_what_cannot_be_served_is_said_at_once(regard: Command, run_folder: Path, tmp_path: Path) -> None:
    for arguments, said in (
        ([tmp_path / "none"], "not a run"),
        ([run_folder, run_folder], "two runs have one name"),
        ([f"one={run_folder}", "--languages", "two=en:de"], "no such run"),
        ([run_folder, "--languages", "en"], "expected FROM:TO"),
        ([run_folder, "--detect", "none"], "--detect none: no such run"),
        ([run_folder, "--keys", tmp_path / "none"], "cannot be read"),
        ([run_folder, "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
        ([run_folder, "--engine", "torch2"], "did you mean 'torch'"),
        ([run_folder, "--precision", "int4"], "--precision int4"),
    ):
        done = regard("serve", *arguments)
        assert done.code == 2
        assert said in done.err
