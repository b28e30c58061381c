"""The inspector's answers: the same in the server, in JSON and in a file; and what it refuses."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from regard.apps.inspector import Inspected, question_of, self_contained
from regard.apps.inspector_server import inspector_app
from regard.core.errors import UsageError
from regard.inspection.trace import Trace
from tests.apps.conftest import Command

HEAD = "decoder.stack.layers.0.mixers.1"


@pytest.fixture(scope="module")
def inspected(run_folder: Path) -> Inspected:
    return Inspected(run_folder)


@pytest.fixture(scope="module")
def server(inspected: Inspected) -> Iterator[TestClient]:
    with TestClient(inspector_app([inspected]), raise_server_exceptions=False) as client:
        yield client


def test_a_look_holds_the_answer_the_search_and_the_trace(server: TestClient, inspected: Inspected) -> None:
    found = server.post("/api/look", json={"text": "abcd"}).json()
    assert (found["format"], found["version"]) == ("regard.look", 1)
    assert found["answer"] == inspected.run("abcd")
    trace = Trace.from_dict(found["trace"])
    assert trace.log_probs == pytest.approx(inspected.run.trace("abcd").log_probs, abs=1e-5)
    best = found["search"]["expansions"][found["search"]["best"] - 1]
    assert best["cumulative"] == pytest.approx(found["candidates"][0]["log_prob"], abs=1e-4)
    assert {"alignment", "source_rollout", "encoder_rollout"} <= found["views"].keys()
    for tops, log_prob in zip(trace.top, trace.log_probs, strict=True):
        assert tops[0][1] >= log_prob - 1e-6


def test_a_forced_token_is_obeyed_and_the_rest_is_found_anew(server: TestClient) -> None:
    plain = server.post("/api/look", json={"text": "abcd"}).json()
    words = plain["search"]["words"]["0"]
    other = next(token for token, _ in words[1:] if plain["search"]["pieces"].get(str(token)) != "⟨end⟩")
    forced = server.post("/api/look", json={"text": "abcd", "begin": [other]}).json()
    assert forced["search"]["expansions"][0]["token"] == other
    assert forced["trace"]["target"][0] == forced["search"]["pieces"][str(other)]
    assert forced["answer"] != plain["answer"]


def test_an_intervention_is_set_beside_the_original(server: TestClient) -> None:
    plain = server.post("/api/look", json={"text": "abcd"}).json()
    off = [{"do": "off", "name": HEAD, "heads": []}]
    changed = server.post("/api/look", json={"text": "abcd", "interventions": off}).json()
    assert changed["before"]["answer"] == plain["answer"]
    assert changed["before"]["log_probs"] == pytest.approx(plain["trace"]["log_probs"], abs=1e-5)
    assert changed["before"]["now"] != pytest.approx(changed["before"]["log_probs"], abs=1e-3)
    (measured,) = [
        one
        for one in server.post("/api/importance", json={"text": "abcd"}).json()
        if (one["name"], one["head"]) == (HEAD, 0)
    ]
    single = [{"do": "off", "name": HEAD, "heads": [0]}]
    now = server.post("/api/look", json={"text": "abcd", "interventions": single}).json()["before"]
    assert measured["change"] == pytest.approx(sum(now["now"]) - sum(now["log_probs"]), abs=1e-4)


def test_steps_words_positions_cuts_probes_and_facts(server: TestClient) -> None:
    steps = server.post("/api/steps", json={"text": "abcd", "attention": HEAD}).json()
    assert steps["steps"]["queries"]["shape"][:2] == [2, len(steps["rows"])]
    assert steps["scale"] == pytest.approx(steps["steps"]["queries"]["shape"][2] ** -0.5)
    words = server.post("/api/words", json={"sentences": ["abc", "bca"]}).json()
    assert [place["name"] for place in words["places"]] == ["fixed", "layer 1", "layer 2"]
    assert server.get("/api/positions/0").json()[0]["kind"] == "queries and keys are turned"
    assert server.post("/api/cuts", json={"text": "abc"}).json()["pieces"]
    probed = server.post("/api/probe", json={"text": "{abc,fed}\t{cba,def}"}).json()
    assert [row["choice"] for row in probed["rows"]] == [
        ["abc", "cba"],
        ["abc", "def"],
        ["fed", "cba"],
        ["fed", "def"],
    ]
    assert probed["rows"][0]["difference"] == 0
    assert probed["rows"][1]["difference"] == pytest.approx(
        probed["rows"][1]["log_prob"] - probed["rows"][0]["log_prob"]
    )
    facts = server.get("/api/facts/0").json()
    assert facts["charts"][0]["title"] == "Loss"
    assert {sample["step"] for sample in facts["samples"]} == {10, 20, 30, 40, 50, 60}


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        ("look", {"text": ""}, "nothing to read"),
        ("look", {"text": "a" * 30_000}, "30,000 characters"),
        ("look", {"text": "ab " * 200}, "tokens"),
        ("look", {"text": "ab", "run": 1}, "no run 1"),
        ("look", {"text": "ab", "run": -1}, "greater than or equal to 0"),
        ("look", {"text": 7}, "valid string"),
        ("look", {"text": "ab", "extra": 1}, "Extra inputs"),
        (
            "look",
            {"text": "ab", "interventions": [{"do": "off", "name": "nobody"}]},
            "nothing passed by the name",
        ),
        ("look", {"text": "ab", "interventions": [{"do": "off", "name": HEAD, "heads": [9]}]}, "not 9"),
        ("look", {"text": "ab", "begin": [10**6]}, ""),
        ("steps", {"text": "ab", "attention": "nobody"}, "no attention 'nobody'"),
        ("words", {"sentences": ["", " "]}, "nothing to read"),
        ("cuts", {"text": " "}, "nothing to cut"),
        ("probe", {"text": "no slot"}, "no slot"),
        ("probe", {"text": "{a,b}\tx\ty"}, "at most one tab"),
    ],
)
def test_bad_questions_get_one_clear_message(
    server: TestClient, path: str, body: dict[str, object], complaint: str
) -> None:
    answer = server.post(f"/api/{path}", json=body)
    assert 400 <= answer.status_code < 500, answer.text
    assert complaint in answer.json()["error"]


@pytest.mark.parametrize(
    "body", [b"{", b'{"text": NaN}', b"[" * 10_000, b"\xff", b"", b'{"text":"a","begin":[1e999]}']
)
def test_broken_bodies_break_nothing(server: TestClient, body: bytes) -> None:
    answer = server.post("/api/look", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert "error" in answer.json()


def test_unknown_tokens_are_told(server: TestClient) -> None:
    (note,) = server.post("/api/look", json={"text": "ab€"}).json()["notes"]
    assert "not in this model's vocabulary" in note


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Host": "127.0.0.1:9"}, True),
        ({"Host": "localhost:9", "Origin": "http://localhost:9"}, True),
        ({"Host": "[::1]:9"}, True),
        ({"Host": "evil.example"}, False),
        ({"Host": "127.0.0.1.evil.example:80"}, False),
        ({"Host": "127.0.0.1:9", "Origin": "http://evil.example"}, False),
        ({"Host": "127.0.0.1:9", "Origin": "null"}, False),
        ({"Host": "127.0.0.1:9", "Origin": "http://127.0.0.1:8"}, False),
    ],
)
def test_only_its_own_page_may_ask(server: TestClient, headers: dict[str, str], allowed: bool) -> None:
    assert (server.get("/", headers=headers).status_code == 200) is allowed
    assert (server.post("/api/cuts", json={"text": "a"}, headers=headers).status_code == 200) is allowed


def test_it_can_be_mounted_under_any_path(inspected: Inspected) -> None:
    whole = FastAPI()
    whole.mount("/look", inspector_app([inspected]))
    with TestClient(whole) as client:
        assert b'id="app"' in client.get("/look/").content
        assert client.post("/look/api/look", json={"text": "ab"}).json()["format"] == "regard.look"
        assert client.post("/look/api/look", json={"text": ""}).status_code == 422
        assert client.get("/look/", headers={"Host": "evil.example"}).status_code == 403


def test_nothing_but_the_given_runs_can_be_read(server: TestClient, run_folder: Path) -> None:
    for path in (
        "/../regard.json",
        "/api/facts/..%2f..",
        "/regard.json",
        f"/{run_folder}/log.jsonl",
        "/openapi.json",
    ):
        assert server.get(path).status_code in (404, 422)


def test_a_damaged_run_says_so_in_the_page(run_folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in run_folder.iterdir():
        if file.is_file():
            (broken / file.name).write_bytes(file.read_bytes())
    (broken / "model.safetensors").write_bytes(b"nonsense")
    with TestClient(inspector_app([Inspected(broken), Inspected(tmp_path / "none")])) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert "model.safetensors" in page.text
        assert "not a run" in page.text
        assert client.post("/api/look", json={"text": "a"}).status_code == 422


def test_a_file_carries_what_the_server_would_have_said(inspected: Inspected, server: TestClient) -> None:
    page = self_contained([inspected], [question_of("abcd"), question_of("fed", "def")], "<b>runs</b>")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    kept = data["kept"][0]
    served = server.post("/api/look", json={"text": "abcd"}).json()
    assert kept["looks"][0]["answer"] == served["answer"]
    assert kept["looks"][0]["trace"]["log_probs"] == pytest.approx(served["trace"]["log_probs"])
    assert kept["looks"][1]["trace"]["target"]
    assert kept["importance"][0]
    assert "steps" in kept["looks"][0]["trace"]["attentions"][0]
    assert "<b>" not in page
    assert "connect-src" not in page
    assert not re.search(r"(src|href)=\"http", page)


def test_what_is_typed_never_becomes_markup(inspected: Inspected) -> None:
    page = self_contained([inspected], [question_of("a</script><script>alert(1)</script>")], "x")
    assert "<script>alert" not in page
    assert page.count("<script") == 2


def test_look_prints_json(regard: Command, run_folder: Path) -> None:
    first, second = regard("look", run_folder, "--text", "abc", "--text", "fed", "--json").json
    assert (first["text"], second["text"]) == ("abc", "fed")
    assert Trace.from_dict(first["trace"]).attentions[0].steps is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["look", "{run}", "--json"], "give at least one --text"),
        (["look", "nowhere", "--no-browser"], "not a run"),
        (["look", "{run}", "nowhere", "--text", "a", "--json"], "not a run"),
        (["look", "{run}", "--text", "", "--json"], "nothing to read"),
    ],
)
def test_look_refuses_clearly(
    regard: Command, run_folder: Path, arguments: list[str], complaint: str
) -> None:
    done = regard(*(one.format(run=run_folder) for one in arguments))
    assert done.code == 2
    assert complaint in done.err


def test_a_text_beyond_what_can_be_shown_is_refused(
    inspected: Inspected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.inspection.look.MOST_TOKENS", 3)
    with pytest.raises(UsageError, match="the inspector shows up to 3"):
        inspected.look(question_of("abcd"))


def test_the_command_serves_on_this_machine_until_it_is_interrupted(run_folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "regard.apps",
        "look",
        str(run_folder),
        "--text",
        "ab cd",
        "--no-browser",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#text=ab%20cd", address)
        with urllib.request.urlopen(address.split("#")[0]) as page:
            assert b'id="app"' in page.read()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    assert process.returncode == 0
