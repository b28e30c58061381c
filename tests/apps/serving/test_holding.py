"""Overload, deadlines, leaving and reloading, with a run that answers only when it may."""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable
from copy import copy
from itertools import chain
from pathlib import Path

import httpx
import pytest

from regard.apps.serving.assembly import Wanted
from regard.apps.serving.limits import Limits
from regard.apps.serving.shelf import Offer
from regard.apps.session import Run, load
from regard.search.search import SearchSpec
from regard.tasks.answers import Answer
from regard.tasks.task import Asked, Task
from tests.apps.serving.conftest import WEB, serving, trained


class Hold:
    """Whether a run may answer, and what it was asked."""

    def __init__(self, engine: bool = False) -> None:
        self.engine, self.may = engine, threading.Event()
        self.asked = list[list[str]]()

    def load(self, folder: Path) -> Run:
        run, hold = load(folder), self

        class Held(Run):
            def task(self, search: SearchSpec | None = None) -> Task:
                task = copy(
                    super().task(search)
                )  # a run keeps its last task: what holds it must not hold it twice
                answer: Callable[[Asked], list[Answer]] = task.answer

                def waiting(asked: Asked) -> list[Answer]:
                    if asked.audience is None:  # nobody waits: it is being warmed up
                        return answer(asked)
                    hold.asked.append(list(asked.texts))
                    assert hold.may.wait(30)
                    return answer(asked)

                task.answer = waiting  # type: ignore[method-assign]
                return task

        return Held(run.path, run.spec, run.model, run.lexicon, run.device, run.seal if self.engine else None)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_full_queue_answers_503_at_once(run_folder: Path) -> None:
    hold = Hold()
    with serving(Wanted([Offer("held", run_folder)], Limits(queue=2)), load=hold.load) as served:

        async def ask() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60) as client:

                def post(text: str) -> asyncio.Task[httpx.Response]:
                    return asyncio.create_task(client.post(f"{served.url}/v1/run", json={"text": text}))

                first = [post("a")]
                while not hold.asked:
                    await asyncio.sleep(0.005)
                first += [post("b"), post("c")]
                while (
                    'regard_waiting_texts{model="held"} 2.0'
                    not in (await client.get(f"{served.url}/metrics")).text
                ):
                    await asyncio.sleep(0.005)
                late = [await post(text) for text in "de"]
                translated = await client.post(f"{served.url}/v1/completions", json={"prompt": "f"})
                hold.may.set()
                return [*(await asyncio.gather(*first)), *late, translated]

        replies = asyncio.run(ask())
    assert [reply.status_code for reply in replies] == [200, 200, 200, 503, 503, 503]
    assert int(replies[3].headers["retry-after"]) >= 1
    assert replies[5].json()["error"]["code"] == "overloaded"
    assert sorted(chain(*hold.asked)) == ["a", "b", "c"]


def test_deadlines_and_leaving_take_work_out_of_the_queue(run_folder: Path) -> None:
    hold = Hold()
    with serving(Wanted([Offer("held", run_folder)], Limits(deadline=0.4)), load=hold.load) as served:

        async def ask() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60) as client:
                url = f"{served.url}/v1/run"
                first = asyncio.create_task(client.post(url, json={"text": "a"}))
                while not hold.asked:
                    await asyncio.sleep(0.005)
                hasty = client.post(url, json={"text": "b", "timeout": 0.05})
                leaving = asyncio.create_task(client.post(url, json={"text": "c"}))
                await asyncio.sleep(0.1)
                leaving.cancel()
                return list(await asyncio.gather(first, hasty))

        slow, hasty = asyncio.run(ask())
        assert (slow.status_code, hasty.status_code) == (504, 408)
        assert "0.05 s you gave" in hasty.json()["error"]["message"]
        hold.may.set()
        assert WEB.post(f"{served.url}/v1/run", json={"text": "d"}).status_code == 200
    assert list(chain(*hold.asked)) == ["a", "d"]


def test_an_engine_is_not_given_what_nobody_waits_for(run_folder: Path) -> None:
    """It cannot be stopped in the middle of a batch, but what has left before is in none."""
    hold = Hold(engine=True)
    with serving(Wanted([Offer("held", run_folder)]), load=hold.load) as served:

        async def ask() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60) as client:
                url = f"{served.url}/v1/run"
                under_way = list[asyncio.Task[httpx.Response]]()
                for text in "ab":  # as many as are under way at a time
                    under_way.append(asyncio.create_task(client.post(url, json={"text": text})))
                    while len(hold.asked) < len(under_way):
                        await asyncio.sleep(0.005)
                hasty = await client.post(url, json={"text": "c", "timeout": 0.05})
                hold.may.set()
                return [*await asyncio.gather(*under_way), hasty]

        replies = asyncio.run(ask())
        assert [reply.status_code for reply in replies] == [200, 200, 408]
        assert replies[0].json()["answers"][0]["engine"] == "ctranslate2"
        assert WEB.post(f"{served.url}/v1/run", json={"text": "d"}).status_code == 200
    assert hold.asked == [["a"], ["b"], ["d"]]


def test_an_engine_is_ready_before_the_first_request(run_folder: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    shutil.copytree(run_folder, fresh, ignore=shutil.ignore_patterns("ctranslate2"))
    with serving(Wanted([Offer("fresh", fresh)])):
        assert list(fresh.glob("ctranslate2/*/model.bin"))


def test_a_changed_folder_is_loaded_again_and_a_broken_one_is_not(run_folder: Path, tmp_path: Path) -> None:
    folder, other = tmp_path / "run", trained("transformer", tmp_path / "other", steps=4)
    shutil.copytree(run_folder, folder)
    before, after = load(folder)("abcdef"), load(other)("abcdef")
    assert before != after
    hold = Hold()
    hold.may.set()
    with serving(Wanted([Offer("run", folder)]), load=hold.load) as served:

        def answer() -> str:
            found = WEB.post(f"{served.url}/v1/run", json={"text": "abcdef"})
            return str(found.json()["answers"][0]["text"])

        assert answer() == before
        hold.may.clear()
        running = list[str]()
        thread = threading.Thread(target=lambda: running.append(answer()))
        thread.start()
        until(lambda: len(hold.asked) == 2)
        (folder / "model.safetensors").write_bytes(b"torn")
        until(lambda: 'outcome="refused"' in WEB.get(f"{served.url}/metrics").text)
        for name in ("regard.json", "model.safetensors"):
            shutil.copy(other / name, folder / name)
        for name in (path.name for path in other.glob("*tokenizer.json")):
            shutil.copy(other / name, folder / name)
        until(lambda: 'outcome="done"' in WEB.get(f"{served.url}/metrics").text)
        hold.may.set()
        assert answer() == after
        thread.join()
        assert running == [before]


def test_runs_are_loaded_when_asked_for_and_put_away(run_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run_folder, other)
    opened = list[Path]()

    def counted(folder: Path) -> Run:
        opened.append(folder)
        return load(folder)

    wanted = Wanted([Offer("one", run_folder), Offer("two", other)], loaded=1)
    with serving(wanted, load=counted) as served:
        assert not opened
        for model in ("one", "one", "two", "one"):
            assert WEB.post(f"{served.url}/v1/run", json={"text": "a", "model": model}).status_code == 200
        assert opened == [run_folder, other, run_folder]
        assert WEB.post(f"{served.url}/v1/run", json={"text": "a"}).status_code == 400
        (other / "model.safetensors").write_bytes(b"torn")
        broken = WEB.post(f"{served.url}/v1/run", json={"text": "a", "model": "two"})
        assert (broken.status_code, broken.json()["error"]["code"]) == (503, "model_unavailable")
        assert str(tmp_path) not in broken.text


def test_another_page_can_be_mounted(run_folder: Path) -> None:
    from starlette.responses import PlainTextResponse

    wanted = Wanted([Offer("one", run_folder)])
    with serving(wanted, look=lambda shelf: PlainTextResponse(",".join(shelf.offers))) as served:
        assert WEB.get(f"{served.url}/look/").text == "one"


@pytest.mark.parametrize("path", ["/v1/run", "/v1/completions"])
def test_a_stream_that_nobody_reads_any_more_ends(writer: Path, path: str) -> None:
    with serving(Wanted([Offer("writer", writer)])) as served:
        fields = {"text": "abc", "prompt": "abc", "temperature": 1.0, "stream": True, "stop": ["zz"]}
        fields |= {"tokens": 4000, "max_tokens": 4000}
        with httpx.Client() as client, client.stream("POST", served.url + path, json=fields) as reply:
            assert next(reply.iter_lines()).startswith("data: ")
        until(lambda: 'regard_running_texts{model="writer"} 0.0' in WEB.get(f"{served.url}/metrics").text)
        short = {"text": "abc", "tokens": 2}
        assert WEB.post(f"{served.url}/v1/run", json=short).status_code == 200
