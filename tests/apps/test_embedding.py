"""Vectors of texts and words from whatever reads: equal however asked, and what they are said to be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard as package
from regard.apps.session import Run
from regard.apps.training import train
from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from tests.apps.conftest import Command
from tests.apps.toys import LEARNED, examples, questions, toy

READING = ("transformer", "gpt", "bert", "classifier", "bilstm_tagger")
MORE = (
    "bahdanau",
    "rnn_lm",
    "elmo",
    "electra",
    "pair_classifier",
    "multiple_choice",
    "cove",
    "span_answerer",
)


class Runs(dict[str, Run]):
    def __init__(self, place: Path) -> None:
        super().__init__()
        self.place = place

    def __missing__(self, name: str) -> Run:
        given, valid = examples(name, 60), examples(name, 24, seed=1)
        train(toy(name), given, self.place / name, valid=valid, steps=None if name == "ngram" else 1, seed=3)
        self[name] = package.load(self.place / name)
        return self[name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("vectors"))


def asked(name: str) -> list[str]:
    texts = [text.replace("___", "b").replace("[MASK]", "a") for text in questions(name)][:6]
    return texts if name != "pair_classifier" else texts[:4]


@pytest.mark.parametrize("name", [*READING, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
@pytest.mark.parametrize("pooling", ["mean", "first", "last", "max", "mix"])
def test_together_or_alone_is_the_same(name: str, pooling: str, runs: Runs) -> None:
    run, texts = runs[name], asked(name)
    together = run.embed(texts, pooling=pooling)
    assert together.dtype == np.float32
    assert len(together) == len(texts)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(run.embed(text, pooling=pooling), vector, atol=1e-5)
    if name != "pair_classifier" and not (pooling == "first" and name in ("gpt", "rnn_lm")):
        assert np.abs(together[0] - together[-1]).max() > 1e-4  # they say something about the text
    normal = run.embed(texts, pooling=pooling, normalise=True)
    assert np.allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-5)


@torch.no_grad()
def test_they_are_what_the_model_computes(runs: Runs) -> None:
    run, text = runs["bert"], "abc defdef"
    model: Any = run.model
    tokenizer = run.lexicon["text"]
    row = [tokenizer.begin, *tokenizer.encode(text), tokenizer.end]
    layers = [layer[0].numpy() for layer in model.layers(Tokens.whole(torch.tensor([row])))]
    assert np.allclose(model.read(Tokens.whole(torch.tensor([row]))).states[0], layers[-1], atol=1e-6)
    assert np.allclose(run.embed(text), layers[-1].mean(0), atol=1e-6)
    assert np.allclose(run.embed(text, pooling="first", layer=1), layers[1][0], atol=1e-6)
    assert np.allclose(run.embed(text, pooling="last", layer=0), layers[0][-1], atol=1e-6)
    assert np.allclose(run.embed(text, pooling="max", layer=-2), layers[-2].max(0), atol=1e-6)
    assert np.allclose(run.embed(text, pooling="mix"), np.mean(layers, 0).mean(0), atol=1e-6)
    words = run.embed_words(text)
    assert [(word.word, word.begin, word.end) for word in words] == [("abc", 0, 3), ("defdef", 4, 10)]
    assert np.allclose(words[1].vector, layers[-1][5:11].mean(0), atol=1e-6)
    assert np.allclose(run.embed_words([text], layer=0)[0][0].vector, layers[0][1:4].mean(0), atol=1e-6)


@torch.no_grad()
def test_a_language_model_reads_as_it_goes_on(runs: Runs) -> None:
    run, text = runs["gpt"], "abc defdef ghij"
    model: Any = run.model
    tokenizer = run.lexicon["text"]
    rows = torch.tensor([[tokenizer.end, *tokenizer.encode(text)]])
    states, _ = model.read(Tokens.whole(rows), model.start(1))
    assert np.allclose(run.embed(text, pooling="last"), states[0, -1], atol=1e-5)
    word = run.embed_words(text)[2]
    assert (word.word, word.begin, word.end) == ("ghij", 11, 15)
    assert np.allclose(word.vector, states[0, 12:16].mean(0), atol=1e-5)


@torch.no_grad()
def test_of_a_translator_they_are_what_its_decoder_looks_at(runs: Runs) -> None:
    run, text = runs["transformer"], "abcdef"
    model: Any = run.model
    tokenizer = run.lexicon["source"]
    memory = model.encoder(Tokens.whole(torch.tensor([[*tokenizer.encode(text), tokenizer.end]])))
    assert np.allclose(run.embed(text), memory.states[0].mean(0), atol=1e-5)


def test_a_word_has_another_vector_in_another_company(runs: Runs) -> None:
    run = runs["bert"]
    one, other = (run.embed_words(text)[-1] for text in ("abc ghij", "defdef ghij"))
    assert one.word == other.word == "ghij"
    assert np.abs(one.vector - other.vector).max() > 1e-4


def test_the_command_prints_lines_or_writes_a_file(regard: Command, runs: Runs, tmp_path: Path) -> None:
    run = runs["bert"]
    texts = ["abc", "", "defdef, ghij"]
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    said = regard("run", run.path, tmp_path / "lines.txt", "--embed", "--pooling", "max", "--normalise")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [row["text"] for row in rows] == texts
    expected = run.embed(texts, pooling="max", normalise=True)
    assert np.array_equal(np.array([row["vector"] for row in rows], np.float32), expected)
    out = tmp_path / "found.npy"
    told = regard("run", run.path, tmp_path / "lines.txt", "--embed", "--layer", 1, "--out", out)
    assert told.out == f"{out}: 3 vectors of 24\n"
    assert np.array_equal(np.load(out), run.embed(texts, layer=1))
    words = regard("run", run.path, tmp_path / "lines.txt", "--embed", "--words").out.splitlines()
    found = json.loads(words[2])["words"]
    assert [(word["word"], word["begin"], word["end"]) for word in found] == [
        ("defdef", 0, 6),
        (",", 6, 7),
        ("ghij", 8, 12),
    ]
    assert json.loads(words[1])["words"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pooling", "max"), "--pooling says which vectors are wanted: give it with --embed"),
        (("--words",), "--words says which vectors are wanted"),
        (("--embed", "--pooling", "men"), "there is no such pooling (did you mean 'mean'?)"),
        (("--embed", "--layer", 9), "layer 9: this model has layers 0 (its input) to 2"),
        (("--embed", "--pooling", "mix", "--layer", 1), "--pooling mix takes all layers"),
        (("--embed", "--pooling", "gist"), "no layer of its own over the first state"),
        (("--embed", "--out", "x.txt"), "written as a .npy file"),
        (("--embed", "--words", "--out", "x.npy"), "words are printed as JSON"),
    ],
)
def test_what_makes_no_sense_is_told(
    regard: Command, runs: Runs, arguments: tuple[Any, ...], message: str
) -> None:
    done = regard("run", runs["bert"].path, *arguments, stdin="abc\n")
    assert done.code == 2
    assert message in done.err


def test_what_is_too_long_is_refused_or_cut(tmp_path: Path) -> None:
    spec = toy("bert", *LEARNED, "model.encoder.embedding.positions.longest=64")
    train(spec, examples("bert", 60), tmp_path, valid=examples("bert", 24, seed=1), steps=1, seed=3)
    run, long = package.load(tmp_path), "abc " * 40
    with pytest.raises(
        DataError, match=r"line 2: .*162 tokens, but this model has 64 positions \(--truncate"
    ):
        run.embed(["abc", long])
    cut = run.embed(long, truncate=True)
    assert np.allclose(cut, run.embed(long[:62]), atol=1e-5)
    assert len(run.embed_words(long, truncate=True)) == 16


@pytest.mark.parametrize("name", ["bert", pytest.param("electra", marks=pytest.mark.slow)])
def test_nothing_is_too_long_where_positions_are_turned(name: str, runs: Runs, regard: Command) -> None:
    """Rows of a toy are of 12 tokens."""
    run, long = runs[name], "abc defdef ghij " * 60
    own = package.load(run.path, engine="torch")
    assert run.model.longest is None
    assert len(run.lexicon["text"].encode(long)) > 512
    assert np.allclose(run.embed(["abc", long])[1], own.embed(long), atol=1e-4)
    assert np.array_equal(own.embed(long, truncate=True), own.embed(long))
    assert len(run.embed_words(long)) == 180
    said = regard("run", run.path, "--embed", stdin=f"{long}\n").json[0]
    assert np.allclose(said["vector"], own.embed(long), atol=1e-4)
    answered = regard("run", run.path, stdin=f"{long} ___\n")
    assert answered.code == 0


def test_counts_have_no_vectors(runs: Runs) -> None:
    with pytest.raises(UsageError, match="a model of kind 'ngram' has no vectors of texts"):
        runs["ngram"].embed(["abc"])
