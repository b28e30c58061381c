"""What is served over HTTP comes from the same engines, and is the same."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from regard.apps.serving.assembly import Wanted
from regard.apps.serving.shelf import Offer
from regard.apps.session import load
from regard.search.greedy import GreedySpec
from tests.apps.serving.conftest import WEB, serving
from tests.engines.small_readers import SENTENCES, reader, reader_of
from tests.engines.small_writers import PROMPTS, writer, writer_of


def asked(url: str, path: str, **question: Any) -> Any:
    reply: httpx.Response = WEB.post(url + path, json=question)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_embeddings_and_completions_come_from_the_fastest_engine(tmp_path: Path) -> None:
    read = reader_of(reader(), tmp_path / "reader")
    wrote = writer_of(writer(), tmp_path / "writer")
    own_vectors = load(read.path, engine="torch").embed(SENTENCES[1:4])
    search = GreedySpec(longest_ratio=0.0, longest_extra=12)
    own_texts = [answer.text for answer in load(wrote.path, engine="torch").answers(PROMPTS[1:6], search)]
    with serving(Wanted([Offer("reader", read.path), Offer("writer", wrote.path)])) as served:
        vectors = asked(served.url, "/v1/embeddings", model="reader", input=SENTENCES[1:4])["data"]
        question = {"model": "writer", "prompt": PROMPTS[1:6], "max_tokens": 12}
        texts = asked(served.url, "/v1/completions", temperature=0, **question)["choices"]
        spoken = {
            greedy: asked(served.url, "/v1/run", model="writer", text="a", greedy=greedy)["answers"][0][
                "engine"
            ]
            for greedy in (True, False)
        }
    for found, own in zip(vectors, own_vectors, strict=True):
        assert found["embedding"] == pytest.approx(own.tolist(), abs=1e-4)
    assert [choice["text"] for choice in texts] == own_texts
    assert spoken == {True: "ctranslate2", False: "torch"}
    assert (read.path / "ctranslate2").exists()  # converted, so used
