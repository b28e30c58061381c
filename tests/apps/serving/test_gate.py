"""Keys, rates and sizes; and that nothing a client sends is this side's failure."""

import json
import stat
import time
from pathlib import Path

import httpx
import openai
import pytest
from libretranslatepy import LibreTranslateAPI

from regard.apps.serving.assembly import Wanted
from regard.apps.serving.keys import Keys, Rates, create_key, read_keys
from regard.apps.serving.limits import Limits
from regard.apps.serving.shelf import Offer
from tests.apps.conftest import Command
from tests.apps.serving.conftest import WEB, Served, serving


def test_keys_are_known_by_their_hash_and_can_be_taken_away(tmp_path: Path, regard: Command) -> None:
    file = tmp_path / "keys"
    secret = regard("key", file, "anna", "--per-minute", 3).out.strip()
    other = create_key(file, "bert")
    assert secret not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    keys = Keys(file)
    assert keys.owner(secret) == read_keys(file)[0]
    assert keys.owner(secret).per_minute == 3  # type: ignore[union-attr]
    assert [keys.owner(wrong) for wrong in (None, "", secret + "x", secret[:-1], "\ud800")] == [None] * 5
    file.write_text(file.read_text().splitlines()[1] + "\n")
    keys._looked = time.monotonic() - 5
    assert keys.owner(secret) is None
    assert keys.owner(other) is not None
    assert regard("key", file, "bert").code == 2


def test_a_bucket_fills_evenly() -> None:
    rates = Rates()
    assert [rates.wait("a", 2, now=0.0) for _ in range(3)] == [0, 0, 30]
    assert rates.wait("b", 2, now=0.0) == 0
    assert rates.wait("a", 2, now=29.0) == pytest.approx(1)
    assert rates.wait("a", 2, now=30.0) == 0
    assert rates.wait("a", 2, now=10_000.0) == 0


@pytest.fixture(scope="module")
def guarded(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Served, str, str]:
    file = tmp_path_factory.mktemp("keys") / "keys"
    free, slow = create_key(file, "free"), create_key(file, "slow", per_minute=2)
    with serving(
        Wanted([Offer("reverse", run_folder, ("ab", "ba"))], Limits(body=5000), keys=file)
    ) as served:
        yield served, free, slow  # type: ignore[misc]


def test_every_route_but_health_needs_a_key(guarded: tuple[Served, str, str]) -> None:
    served, free, _ = guarded
    paths = WEB.get(f"{served.url}/openapi.json", headers={"Authorization": f"Bearer {free}"}).json()["paths"]
    assert len(paths) > 10
    for path, methods in paths.items():
        for method in methods:
            reply = WEB.request(method, served.url + path.replace("{name}", "reverse"))
            wanted = (200,) if path in ("/healthz", "/readyz", "/health") else (401, 403)
            assert reply.status_code in wanted, (method, path)
    assert WEB.get(f"{served.url}/docs").status_code == 401
    assert WEB.get(f"{served.url}/nowhere").status_code == 401


def test_real_clients_give_their_key_in_their_own_way(guarded: tuple[Served, str, str]) -> None:
    served, free, slow = guarded
    translator = LibreTranslateAPI(served.url, api_key=free)
    assert translator.translate("abc", "ab", "ba")
    assert len(translator.languages()) == 2
    as_json = {"q": "abc", "source": "ab", "target": "ba", "api_key": free}
    assert WEB.post(f"{served.url}/translate", json=as_json).status_code == 200
    assert WEB.post(f"{served.url}/translate", json=as_json | {"api_key": "no"}).status_code == 403
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key=free, max_retries=0)
    assert client.models.list().data[0].id == "reverse"
    with pytest.raises(openai.AuthenticationError, match="Invalid API key"):
        openai.OpenAI(base_url=f"{served.url}/v1", api_key="wrong", max_retries=0).models.list()
    hasty = openai.OpenAI(base_url=f"{served.url}/v1", api_key=slow, max_retries=0)
    hasty.models.list()
    hasty.models.list()
    with pytest.raises(openai.RateLimitError, match="2 requests a minute") as caught:
        hasty.models.list()
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 30
    assert client.models.list().data


def test_large_bodies_are_refused_while_they_are_read(guarded: tuple[Served, str, str]) -> None:
    served, free, _ = guarded
    headers = {"Authorization": f"Bearer {free}", "Content-Type": "application/json"}
    whole = WEB.post(f"{served.url}/v1/run", content=b" " * 6000, headers=headers)
    assert whole.status_code == 413

    def without_end():
        for _ in range(10_000):
            yield b" " * 1000

    try:
        piecewise = WEB.post(f"{served.url}/v1/run", content=without_end(), headers=headers)
        assert piecewise.status_code == 413
    except httpx.WriteError:  # refused and closed before the client had done sending
        pass
    assert WEB.get(f"{served.url}/healthz").status_code == 200


DEEP = b"[" * 100_000
HOSTILE = [
    *(b"", b"{", b"null", b"[]", b"7", b'"x"', b"\xff\xfe", DEEP, b'{"text": {"a": ' + DEEP),
    *(b'{"text": NaN}', b'{"text": "\\ud800"}', b'{"text": 7}', b'{"texts": []}', b'{"texts": ["a", null]}'),
    *(
        b'{"text": "abc", ' + rest + b"}"
        for rest in (
            *(b'"temperature": NaN', b'"temperature": 1e999', b'"best": 1e400', b'"best": ' + b"9" * 5000),
            *(b'"texts": ["b"]', b'"beam": 0', b'"beam": 999999999', b'"best": 2, "greedy": true'),
            *(b'"beam": 2, "temperature": 1', b'"stop": [""]', b'"require": ["a"], "greedy": true'),
            *(b'"model": "\\u0000"', b'"timeout": 0', b'"stream": 1'),
        )
    ),
]
ODD = [
    "\x00", "\u202e\u2066abc", "a\u0301" * 200, "\U0010ffff\ufffe", "\ufeff", "🏳️‍🌈" * 20, "\r\n\t\x0b\x0c",
    "</s><s>⟨end⟩[MASK]", "\u2028\u2029", " " * 500, "﷽" * 50, "a" * 3000,
]  # fmt: skip


def test_bad_requests_get_a_reason(server: Served) -> None:
    for number, body in enumerate(HOSTILE):
        others = ("/v1/completions", "/v1/embeddings", "/detect") if number < 12 else ()
        for path in ("/v1/run", "/translate", *others):
            reply = WEB.post(
                f"{server.url}{path}", content=body, headers={"Content-Type": "application/json"}
            )
            assert 400 <= reply.status_code < 500, (path, body[:60], reply.text)
            error = reply.json()["error"]
            assert error["message"] if path.startswith("/v1") else error
            assert len(reply.text) < 2000
    for method, path in (
        ("GET", "/v1/run"),
        ("POST", "/nowhere"),
        ("PUT", "/translate"),
        ("GET", "/v1/models/%2e%2e%2f"),
    ):
        assert 400 <= WEB.request(method, server.url + path).status_code < 500
    text = WEB.post(f"{server.url}/v1/run", content=b"<xml/>", headers={"Content-Type": "text/xml"})
    assert text.status_code == 400


def test_odd_texts_are_answered(server: Served) -> None:
    for number, text in enumerate(ODD):
        for model in (("reverse", "writer", "judge")[number % 3], "reverse"):
            body = json.dumps({"model": model, "text": text, "truncate": True, "tokens": 5})
            reply = WEB.post(
                f"{server.url}/v1/run", content=body, headers={"Content-Type": "application/json"}
            )
            assert reply.status_code == 200, (model, text, reply.text)
            assert reply.json()["answers"][0]["source"] == text
    for text in ODD:
        fields = {"q": text, "source": "ab", "target": "ba", "format": "html"}
        assert WEB.post(f"{server.url}/translate", json=fields).status_code in (200, 400)
