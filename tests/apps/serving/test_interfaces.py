"""What real clients of LibreTranslate and OpenAI get, and that it is what ``regard run`` says."""

import http.client
import json
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from libretranslatepy import LibreTranslateAPI

from regard.apps.session import Run, load
from regard.inspection.trace import Trace
from regard.search.greedy import GreedySpec
from regard.search.sampling import SamplingSpec
from regard.search.search import SearchSpec
from tests.apps.conftest import Command
from tests.apps.serving.conftest import WEB, Served
from tests.apps.toys import pairs

WORDS = [source for source, _ in pairs(40, seed=5)]


@pytest.fixture(scope="module")
def client(server: Served) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def reverse(run_folder: Path) -> Run:
    return load(run_folder)


@pytest.fixture(scope="module")
def wrote(writer: Path) -> Run:
    return load(writer)


# LibreTranslate


def test_libretranslate_texts_are_those_of_the_command(
    server: Served, run_folder: Path, regard: Command
) -> None:
    client = LibreTranslateAPI(server.url)
    offline = regard("run", run_folder, stdin="".join(f"{word}\n" for word in WORDS[:12])).out.splitlines()
    assert [client.translate(word, "ab", "ba") for word in WORDS[:12]] == offline
    whole = "\n".join(WORDS[:12]) + "\n\n"
    assert client.translate(whole, "ab", "ba") == "\n".join(offline) + "\n\n"
    reply = WEB.post(
        f"{server.url}/translate", json={"q": WORDS[:12], "source": "ab", "target": "ba", "alternatives": 2}
    ).json()
    assert reply["translatedText"] == offline
    assert [len(some) for some in reply["alternatives"]] == [2] * 12
    assert reply["alternatives"][0][0] != offline[0]


def test_html_keeps_every_tag(server: Served, reverse: Run) -> None:
    q = '<p class="x">abc <b>de</b><!-- no --></p>\n<code>abc</code><br/>f&amp;'
    reply = WEB.post(
        f"{server.url}/translate", data={"q": q, "source": "ab", "target": "ba", "format": "html"}
    )
    abc, de = reverse(["abc", "de"])
    assert reply.json()["translatedText"].startswith(
        f'<p class="x">{abc} <b>{de}</b><!-- no --></p>\n<code>abc</code><br/>'
    )


def test_languages_and_settings(server: Served) -> None:
    client = LibreTranslateAPI(server.url)
    found = {language["code"]: language for language in client.languages()}
    assert found["ab"] == {"code": "ab", "name": "Abkhazian", "targets": ["ba"]}
    assert found["ba"]["targets"] == []
    settings = WEB.get(f"{server.url}/frontend/settings").json()
    assert settings["language"]["source"] == {"code": "ab", "name": "Abkhazian"}
    assert settings["keyRequired"] is False


def test_detection_is_what_the_classifier_says(server: Served, judge: Path) -> None:
    found = LibreTranslateAPI(server.url).detect("cab")
    offline = load(judge).answers(["cab"], SearchSpec.from_dict({"kind": "ranking", "best": 5}))[0]
    assert [one["language"] for one in found] == [one.text for one in offline.candidates]
    assert found[0]["confidence"] == pytest.approx(100 * math.exp(offline.candidates[0].log_prob), abs=0.01)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "ab", "target": "ba"}, "Invalid request: missing q parameter"),
        ({"q": "abc", "target": "ba"}, "Invalid request: missing source parameter"),
        ({"q": "abc", "source": "ab", "target": "zz"}, "zz is not supported"),
        ({"q": "abc", "source": "ba", "target": "ab"}, "not available as a target language"),
        ({"q": ["a"] * 300, "source": "ab", "target": "ba"}, "texts: 300 are too many, at most 128"),
        ({"q": 7, "source": "ab", "target": "ba"}, "Invalid request: q"),
        ({"q": "abc", "source": "ab", "target": "ba", "format": "pdf"}, "format"),
    ],
)
def test_libretranslate_says_what_is_wrong(server: Served, fields: dict[str, object], message: str) -> None:
    reply = WEB.post(f"{server.url}/translate", json=fields)
    assert reply.status_code == 400
    assert message in reply.json()["error"]


# OpenAI


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["reverse", "writer", "judge"]
    assert client.models.retrieve("writer").owned_by == "regard"
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.models.retrieve("other")


def test_greedy_completions_are_those_of_the_run(client: openai.OpenAI, wrote: Run) -> None:
    prompts = ["abc", "ghij defde", "", "d"]
    search = GreedySpec(longest_ratio=0.0, longest_extra=9)
    reply = client.completions.create(model="writer", prompt=prompts, max_tokens=9, temperature=0, logprobs=3)
    offline = wrote.answers(prompts, search)
    assert [choice.text for choice in reply.choices] == [answer.text for answer in offline]
    for choice, answer in zip(reply.choices, offline, strict=True):
        best = answer.candidates[0]
        assert choice.finish_reason == ("stop" if best.finished else "length")
        own = best.token_log_probs[: len(choice.logprobs.tokens)]
        assert choice.logprobs.token_logprobs == pytest.approx(own, abs=1e-4)
        assert "".join(choice.logprobs.tokens) == best.text
        for token, value, tops in zip(
            choice.logprobs.tokens, choice.logprobs.token_logprobs, choice.logprobs.top_logprobs, strict=True
        ):
            assert len(tops) <= 3
            assert max(tops.values()) == pytest.approx(value, abs=1e-5)
            assert tops[token] == pytest.approx(value, abs=1e-5)
    assert reply.usage.completion_tokens == sum(len(one.candidates[0].pieces) for one in offline)


def test_seeds_repeat_and_agree_with_the_run(client: openai.OpenAI, wrote: Run) -> None:
    settings = {"model": "writer", "max_tokens": 12, "temperature": 1.5, "top_p": 0.95, "seed": 11}
    reply = client.completions.create(prompt=["abc", "de"], **settings)
    search = SamplingSpec(longest_ratio=0.0, longest_extra=12, temperature=1.5, top_p=0.95, seed=11)
    search = SearchSpec.from_dict(wrote.spec.search.to_dict() | search.to_dict())
    assert [choice.text for choice in reply.choices] == [
        answer.text for answer in wrote.answers(["abc", "de"], search)
    ]
    several = client.completions.create(prompt="abc", n=3, **settings)
    assert several.choices[0].text == reply.choices[0].text
    assert len({choice.text for choice in several.choices}) > 1
    best = client.completions.create(prompt="abc", n=1, best_of=3, logprobs=0, **settings)
    assert best.choices[0].text in {choice.text for choice in several.choices}
    drawn = {
        client.completions.create(model="writer", prompt="abc", temperature=5).choices[0].text
        for _ in range(4)
    }
    assert len(drawn) > 1


def test_streams_say_the_same_piece_by_piece(client: openai.OpenAI) -> None:
    settings = {
        "model": "writer",
        "prompt": ["abc d", "g"],
        "max_tokens": 14,
        "temperature": 1.0,
        "seed": 3,
        "n": 2,
    }
    whole = client.completions.create(**settings)
    said, reasons, events, usage = ["", "", "", ""], {}, 0, None
    for event in client.completions.create(stream=True, stream_options={"include_usage": True}, **settings):
        usage = event.usage or usage
        for choice in event.choices:
            said[choice.index] += choice.text
            events += 1
            if choice.finish_reason:
                reasons[choice.index] = choice.finish_reason
    assert said == [choice.text for choice in whole.choices]
    assert reasons == {choice.index: choice.finish_reason for choice in whole.choices}
    assert events > 12
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_stop_and_echo(client: openai.OpenAI, wrote: Run) -> None:
    free = (
        client.completions.create(model="writer", prompt="abc ", max_tokens=14, temperature=0).choices[0].text
    )
    stop = free[4:6]
    reply = client.completions.create(
        model="writer", prompt="abc ", max_tokens=14, temperature=0, stop=[stop, "zz"], echo=True, logprobs=1
    )
    (choice,) = reply.choices
    assert choice.text == "abc " + free[: free.index(stop)]
    assert choice.finish_reason == "stop"
    scored = next(iter(wrote.score([("abc ",)])))
    assert choice.logprobs.token_logprobs[0] is None
    assert choice.logprobs.token_logprobs[1:4] == pytest.approx(scored.token_log_probs[1:4], abs=1e-4)
    nothing = client.completions.create(model="writer", prompt="abc", max_tokens=0, echo=True, logprobs=1)
    assert nothing.choices[0].text == "abc"
    assert len(nothing.choices[0].logprobs.tokens) == 3


def test_a_translator_completes_by_translating(client: openai.OpenAI, reverse: Run) -> None:
    reply = client.completions.create(model="reverse", prompt="abc", n=2)
    found = reverse.answers(["abc"], SearchSpec.from_dict(reverse.spec.search.to_dict() | {"best": 2}))[0]
    assert [choice.text for choice in reply.choices] == [one.text for one in found.candidates]
    events = list(client.completions.create(model="reverse", prompt="abc", stream=True))
    assert "".join(choice.text for event in events for choice in event.choices) == found.text


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"model": "none"}, openai.NotFoundError, "no model 'none'"),
        ({"model": "../../etc/passwd"}, openai.NotFoundError, "no model"),
        ({"max_tokens": 10**9}, openai.BadRequestError, "tokens: 1,000,000,000 are too many"),
        ({"n": 1000}, openai.BadRequestError, "at most 16"),
        ({"temperature": -1}, openai.BadRequestError, "temperature"),
        ({"prompt": [1, 2]}, openai.BadRequestError, "prompt"),
        ({"prompt": []}, openai.BadRequestError, "prompt"),
        ({"prompt": "a" * 60_000}, openai.BadRequestError, "characters of a text: 60,000 are too many"),
        ({"stop": ["x"] * 40}, openai.BadRequestError, "stop: 40 texts, at most 32"),
        ({"suffix": "x"}, openai.BadRequestError, "suffix is not supported"),
        ({"temperature": 1e308}, openai.BadRequestError, "temperature"),
        ({"seed": -1}, openai.BadRequestError, "seed"),
    ],
)
def test_openai_errors_are_its_own(
    client: openai.OpenAI, changes: dict[str, object], error: type[openai.APIStatusError], said: str
) -> None:
    with pytest.raises(error) as caught:
        client.completions.create(**({"model": "writer", "prompt": "abc"} | changes))  # type: ignore[call-overload]
    assert said in caught.value.body["message"]  # type: ignore[index, call-overload]
    assert caught.value.body["type"] in ("invalid_request_error", "not_found_error")  # type: ignore[index, call-overload]


def test_embeddings_in_both_forms(client: openai.OpenAI, wrote: Run, reverse: Run) -> None:
    packed = client.embeddings.create(model="writer", input=["abc", "de ghij"])
    plain = client.embeddings.create(model="reverse", input="abc", encoding_format="float")
    found = np.array([one.embedding for one in packed.data])
    assert np.allclose(found, wrote.embed(["abc", "de ghij"]), atol=1e-5)
    assert np.allclose(plain.data[0].embedding, reverse.embed("abc"), atol=1e-5)
    assert packed.usage.prompt_tokens == 10
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model="writer", input="abc", dimensions=2)


# Own


def run_of(server: Served, **fields: object) -> dict[str, object]:
    reply = WEB.post(f"{server.url}/v1/run", json=fields)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_own_answers_are_those_of_the_command(server: Served, run_folder: Path, regard: Command) -> None:
    texts = [*WORDS[:5], "", WORDS[5]]
    asked = {"beam": 3, "best": 2, "forbid": ["a"], "prefix": "b", "alignment": True}
    found = run_of(server, model="reverse", texts=texts, **asked)
    offline = regard(
        "run", run_folder, "--beam", 3, "--best", 2, "--forbid", "a", "--prefix", "b", "--json",
        stdin="".join(f"{text}\n" for text in texts),
    ).json  # fmt: skip
    assert found["task"] == "transduction"
    for ours, theirs in zip(found["answers"], offline, strict=True):
        assert ours["text"] == theirs["text"]
        if ours["text"]:
            assert ours["pieces"] == theirs["pieces"]
            assert ours["log_prob"] == pytest.approx(theirs["log_prob"], abs=1e-4)
            assert [one["text"] for one in ours["n_best"]] == [one["text"] for one in theirs["n_best"]]
            assert np.allclose(ours["alignment"], theirs["alignment"], atol=1e-3)


def test_traces_and_trees_come_on_request(server: Served, reverse: Run) -> None:
    (found,) = run_of(server, model="reverse", text="abc", trace=True, tree=True, beam=2)["answers"]
    trace = Trace.from_dict(found["trace"])
    offline = reverse.trace("abc", found["text"])
    assert [seen.name for seen in trace.attentions] == [seen.name for seen in offline.attentions]
    assert np.allclose(trace.attentions[0].weights, offline.attentions[0].weights, atol=0.01)
    assert found["search"]["expansions"]


def test_any_task_answers(server: Served, judge: Path) -> None:
    found = run_of(server, model="judge", texts=["abc", "fed"], best=3)
    assert found["task"] == "classification"
    assert [answer["text"] for answer in found["answers"]] == load(judge)(["abc", "fed"])
    assert len(found["answers"][0]["n_best"]) == 3


def test_own_streams(server: Served, wrote: Run) -> None:
    asked = {"model": "writer", "texts": ["abc", "d"], "greedy": True, "tokens": 9, "stream": True}
    said, last = ["", ""], None
    with WEB.stream("POST", f"{server.url}/v1/run", json=asked) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: "):
                last = json.loads(line[6:])
                if "piece" in last:
                    said[last["place"]] += last["piece"]
    texts = [answer["text"] for answer in last["answers"]]
    assert texts == [one.text for one in wrote.answers(["abc", "d"], GreedySpec(longest_extra=9))]
    assert all(text.startswith(some) and some for text, some in zip(texts, said, strict=True))


def test_operation(server: Served) -> None:
    assert WEB.get(f"{server.url}/healthz").json() == {"status": "ok"}
    assert WEB.get(f"{server.url}/readyz").status_code == 200
    asked = {"q": "abc", "source": "ab", "target": "ba"}
    assert WEB.post(f"{server.url}/translate", json=asked).status_code == 200
    page = WEB.get(f"{server.url}/metrics").text
    assert 'regard_requests_total{route="/translate",status="200"}' in page
    assert 'regard_batch_texts_count{model="reverse"}' in page
    assert 'regard_waiting_texts{model="reverse"} 0.0' in page
    docs = WEB.get(server.url, follow_redirects=True).text
    assert "/v1/completions" in docs
    assert "http://" not in docs
    assert "https://" not in docs
    assert "/v1/run" in WEB.get(f"{server.url}/openapi.json").json()["paths"]


def test_all_interfaces_at_once_say_what_is_said_offline(server: Served, reverse: Run) -> None:
    words = [source for source, _ in pairs(96, seed=11)]
    offline = dict(zip(words, reverse(words), strict=True))
    languages = {"source": "ab", "target": "ba"}
    ways: list[Callable[[list[str]], tuple[str, dict[str, Any], Callable[[Any], list[str]]]]] = [
        lambda some: ("/translate", {"q": some, **languages}, lambda found: list(found["translatedText"])),
        lambda some: (
            "/translate",
            {"q": "\n".join(some), **languages},
            lambda found: str(found["translatedText"]).split("\n"),
        ),
        lambda some: (
            "/v1/completions",
            {"model": "reverse", "prompt": some},
            lambda found: [choice["text"] for choice in found["choices"]],
        ),
        lambda some: (
            "/v1/run",
            {"model": "reverse", "texts": some},
            lambda found: [answer["text"] for answer in found["answers"]],
        ),
    ]

    def ask(number: int) -> list[tuple[str, str]]:
        some = words[number % 16 :: 1 + number % 7]
        path, fields, texts = ways[number % len(ways)](some)
        return list(zip(some, texts(WEB.post(f"{server.url}{path}", json=fields).json()), strict=True))

    with ThreadPoolExecutor(16) as clients:
        heard = [pair for found in clients.map(ask, range(32)) for pair in found]
    assert len(heard) > 500
    assert [pair for pair in heard if offline[pair[0]] != pair[1]] == []


def test_sixty_four_clients_get_their_own_answers(server: Served, reverse: Run) -> None:
    words = [source for source, _ in pairs(128, seed=9)]
    offline = dict(zip(words, reverse(words), strict=True))
    swapped, done = list[str](), list[int]()

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        for word in words[number::64]:
            body = json.dumps({"model": "reverse", "text": word})
            connection.request("POST", "/v1/run", body, {"Content-Type": "application/json"})
            answer = json.load(connection.getresponse())["answers"][0]
            if answer["source"] != word or answer["text"] != offline[word]:
                swapped.append(word)
            done.append(number)
        connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 128
    assert not swapped
    page = WEB.get(f"{server.url}/metrics").text
    count = next(
        line for line in page.splitlines() if line.startswith('regard_batch_texts_count{model="reverse"}')
    )
    assert float(count.split()[-1]) < 128
