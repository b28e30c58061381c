"""Requests that follow the OpenAPI page, and requests that do not: never a failure of this side."""

import warnings
from collections import Counter

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from tests.apps.serving.conftest import WEB, Served

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of libraries that it uses
    import requests
    import schemathesis
    from schemathesis import GenerationMode

HARMLESS = {
    # What a fuzzer asks for is seldom asked for in earnest: answers may be short.
    "tokens": 3,
    "max_tokens": 3,
}


def fuzz(server: Served, examples: int, method: str = "") -> Counter[int]:
    """``examples`` requests to each operation, half of them against its rules."""
    page = WEB.get(f"{server.url}/openapi.json").json()
    schema = schemathesis.openapi.from_dict(page)
    statuses = Counter[int]()
    with requests.Session() as session:
        for operation in (found.ok() for found in schema.get_all_operations()):
            if method and operation.method.upper() != method:
                continue
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try:
                    cases = operation.as_strategy(generation_mode=mode)
                    one(cases, server, session, statuses, max(1, examples // 2))
                except (schemathesis.errors.InvalidSchema, Unsatisfiable):  # nothing to be got wrong there
                    continue
    return statuses


def one(
    cases: object, server: Served, session: requests.Session, statuses: Counter[int], examples: int
) -> None:
    @settings(
        max_examples=examples, database=None, deadline=None, derandomize=examples < 100,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases)  # type: ignore[arg-type]
    def ask(case: schemathesis.Case) -> None:
        if isinstance(case.body, dict) and "model" in case.body and sum(statuses.values()) % 3:
            case.body["model"] = ("reverse", "writer", "judge")[sum(statuses.values()) % 3]
            for name in HARMLESS.keys() & case.body.keys():
                if isinstance(case.body[name], int) and case.body[name] > 3:
                    case.body[name] = HARMLESS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reply = case.call(base_url=server.url, session=session, timeout=60)
        statuses[reply.status_code] += 1
        assert reply.status_code < 500, (case.as_curl_command(), reply.text)

    ask()


def still_answers(server: Served) -> None:
    found = WEB.post(f"{server.url}/v1/run", json={"model": "reverse", "text": "abc"})
    assert found.status_code == 200
    page = WEB.get(f"{server.url}/metrics").text
    assert 'regard_waiting_texts{model="reverse"} 0.0' in page


@pytest.mark.filterwarnings("ignore")
def test_a_few_requests_of_every_kind(server: Served) -> None:
    statuses = fuzz(server, 4, "POST")
    assert statuses[400] > 5
    still_answers(server)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ten_thousand_requests(server: Served) -> None:
    statuses = fuzz(server, 900)
    while sum(statuses.values()) < 10_000:
        statuses += fuzz(server, 900)
    assert statuses[200] > 500
    assert statuses[400] > 500
    still_answers(server)


def test_slow_senders_are_sent_away(run_folder: object) -> None:
    import socket

    from regard.apps.serving.assembly import Wanted
    from regard.apps.serving.limits import Limits
    from regard.apps.serving.shelf import Offer
    from tests.apps.serving.conftest import serving

    with serving(Wanted([Offer("run", run_folder)], Limits(reading=0.2))) as served:  # type: ignore[arg-type]
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(b"POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            assert b" 408 " in slow.recv(200)
        assert httpx.get(f"{served.url}/healthz").status_code == 200
