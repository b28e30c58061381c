"""Tables of words that start from files of vectors: what is covered, what width follows, what stays fixed."""

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.apps.training import Listener, train
from regard.apps.vectors import Coverage
from regard.core.errors import UsageError
from regard.interop.vector_files import write_vectors
from regard.interop.word_vectors import table_of
from regard.recipes.catalogue import recipe
from tests.apps.toys import examples, tagged, texts, toy

WORDS = ["abc", "defdef", "other"]
WIDTH = 24
"""What toys are wide."""


class Heard(Listener):
    def __init__(self) -> None:
        self.coverage: list[Coverage] = []

    def on_vectors(self, coverage: Coverage) -> None:
        self.coverage.append(coverage)


def vectors(path: Path, width: int = WIDTH, words: list[str] = WORDS) -> np.ndarray:
    values = np.random.default_rng(0).normal(size=(len(words), width)).astype(np.float32)
    write_vectors(path, words, values, "glove")
    return values


def labelled() -> list[tuple[str, str]]:
    """ABC occurs with capitals only, ghij has no vector."""
    return [(text.replace("abc", "ABC"), text[0]) for text in texts(12)]


def classifier(*settings: str) -> regard.SystemSpec:
    return toy("classifier", "data.tokenizer={unit: word, size: 100}", *settings)


def rows_of(run: regard.Run, field: str, words: list[str]) -> torch.Tensor:
    numbers = [run.lexicon[field].encode(word)[0] for word in words]
    return table_of(run.model, run.spec.model, field).weight.detach()[numbers]


def test_says_what_is_covered_and_keeps_it_if_frozen(tmp_path: Path) -> None:
    values, heard = vectors(tmp_path / "v.txt"), Heard()
    run = train(
        classifier("training.thawing.freeze=embeddings"),
        labelled(),
        tmp_path / "run",
        valid=labelled(),
        steps=3,
        vectors=[str(tmp_path / "v.txt")],
        listener=heard,
    ).run
    (coverage,) = heard.coverage
    counts = " ".join(text for text, _ in labelled()).split()
    assert (coverage.words, coverage.covered, coverage.lowered) == (3, 2, 1)
    assert coverage.tokens == pytest.approx(1 - counts.count("ghij") / len(counts))
    assert "2 of 3 text words (66.7%, 1 of them in small letters)" in coverage.summary()
    np.testing.assert_array_equal(rows_of(run, "text", ["ABC", "defdef"]).numpy(), values[:2])


def test_what_is_not_frozen_learns(tmp_path: Path) -> None:
    values = vectors(tmp_path / "v.txt")
    run = train(
        classifier(),
        labelled(),
        tmp_path / "run",
        valid=labelled(),
        steps=3,
        vectors=[str(tmp_path / "v.txt")],
    ).run
    assert not np.array_equal(rows_of(run, "text", ["defdef"]).numpy(), values[1:2])


def test_a_run_of_word_vectors_is_as_good_as_a_file(tmp_path: Path) -> None:
    words = regard.train(toy("word2vec"), texts(40), tmp_path / "words", valid=texts(8), steps=5).run
    run = train(
        classifier("training.thawing.freeze=embeddings"),
        labelled(),
        tmp_path / "run",
        valid=labelled(),
        steps=1,
        vectors=[str(tmp_path / "words")],
    ).run
    torch.testing.assert_close(rows_of(run, "text", ["ghij"]), rows_of(words, "text", ["ghij"]))


def test_another_width_is_refused_with_both_numbers_where_it_was_chosen(tmp_path: Path) -> None:
    vectors(tmp_path / "v.txt", width=7)
    with pytest.raises(UsageError, match=r"7 wide, but model.encoder.embedding has room for 24"):
        train(classifier(), labelled(), tmp_path / "run", vectors=[str(tmp_path / "v.txt")])
    with pytest.raises(UsageError, match=r"room for 9 \(--set model.encoder.embedding.width=9\)"):
        train(
            "classifier",
            labelled(),
            tmp_path / "run",
            settings=["model.encoder.embedding.width=9"],
            vectors=[str(tmp_path / "v.txt")],
        )


@pytest.mark.parametrize(
    ("name", "field", "width", "table"),
    [
        ("classifier", "text", 30, None),
        ("bilstm_tagger", "text", 180, None),  # 150 of it are spelled
        ("rnn_lm", "text", 30, None),
        ("deep_tagger", "text", 30, None),
        ("bahdanau", "source", 256, 30),  # one table for both sides
        ("gpt", "text", 256, 30),  # all of a Transformer is as wide as its embedding
        ("transformer", "source", 256, 30),
        ("bert", "text", 256, 30),
        ("word2vec", "text", 30, None),
    ],
)
def test_a_width_that_nobody_chose_follows_the_vectors(
    name: str, field: str, width: int, table: int | None, tmp_path: Path
) -> None:
    from regard.apps.vectors import with_room

    vectors(tmp_path / "v.txt", width=30)
    spec = recipe(name).override([f"vectors={{{field}: {tmp_path / 'v.txt'}}}"])
    model = with_room(spec, [], free=True).model
    assert model.own_width(field) == 30
    paths = model.paths()
    where = model.tables[field].removesuffix("tokens").removesuffix("words")
    assert (paths[f"{where}width"], paths.get(f"{where}table")) == (width, table)
    with torch.device("meta"):
        built = model.build(dict.fromkeys((*spec.data.fields, *spec.data.labels), 50))
    assert table_of(built, model, field).weight.shape == (50, 30)


def test_one_table_for_both_sides_stays_one(tmp_path: Path) -> None:
    from regard.apps.vectors import with_room

    vectors(tmp_path / "v.txt", width=30)
    spec = recipe("transformer_tiny").override([f"vectors={{source: {tmp_path / 'v.txt'}}}"])
    model = with_room(spec, [], free=True).model
    with torch.device("meta"):
        built = model.build({"source": 50, "target": 50})
    assert table_of(built, model, "source").weight is table_of(built, model, "target").weight


def test_both_sides_of_a_translator_each_have_their_own(tmp_path: Path) -> None:
    letters = vectors(tmp_path / "v.txt", words=["a", "b", "c"])
    heard = Heard()
    run = train(
        toy("bahdanau", "training.thawing.freeze=embeddings", "model.tie=none"),
        examples("bahdanau", 40),
        tmp_path / "run",
        valid=examples("bahdanau", 8, seed=1),
        steps=1,
        vectors=[f"target={tmp_path / 'v.txt'}", str(tmp_path / "v.txt")],
        listener=heard,
    ).run
    assert {coverage.field for coverage in heard.coverage} == {"source", "target"}
    assert all(coverage.covered == 3 and coverage.words == 6 for coverage in heard.coverage)
    np.testing.assert_array_equal(rows_of(run, "target", ["b"]).numpy(), letters[1:2])


def test_letters_learn_beside_fixed_words(tmp_path: Path) -> None:
    own = WIDTH - 8
    values = vectors(tmp_path / "v.txt", width=own, words=["aa", "x"])
    spec = toy("bilstm_tagger", "training.thawing.freeze=embeddings")
    run = train(
        spec,
        tagged(20),
        tmp_path / "run",
        valid=tagged(8, seed=1),
        steps=3,
        vectors=[str(tmp_path / "v.txt")],
    ).run
    np.testing.assert_array_equal(rows_of(run, "text", ["aa"]).numpy(), values[:1])
    before = spec.model.build(run.lexicon.sizes)
    name = "encoder.embedding.spelling.filters.0.weight"
    assert not torch.equal(before.state_dict()[name], run.model.state_dict()[name])
    assert float((run.model.state_dict()[name] - before.state_dict()[name]).abs().max()) > 0


def test_vectors_without_a_word_of_the_vocabulary_are_refused(tmp_path: Path) -> None:
    vectors(tmp_path / "v.txt", words=["nothing", "else"])
    with pytest.raises(UsageError, match="has none of the 3 words of this vocabulary"):
        train(classifier(), labelled(), tmp_path / "run", valid=labelled(), vectors=[str(tmp_path / "v.txt")])


def test_a_field_without_a_table_is_refused(tmp_path: Path) -> None:
    vectors(tmp_path / "v.txt")
    with pytest.raises(UsageError, match="has tables of nothing"):
        train(toy("ngram"), texts(8), tmp_path / "run", vectors=[str(tmp_path / "v.txt")])


def test_commands_from_vectors_to_neighbours_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a person types them: train from a file, ask, judge, write, read."""
    from regard.apps.cli import app

    def regard_says(*arguments: object) -> tuple[str, str]:
        app([str(argument) for argument in arguments], standalone_mode=False)
        said = capsys.readouterr()
        return said.out, said.err

    text, run, again = tmp_path / "text.txt", tmp_path / "run", tmp_path / "again"
    text.write_text("\n".join(texts(60)))
    vectors(tmp_path / "v.txt", width=100)
    small = ("--set", "data.tokenizer.min_count=1", "--set", "data.sample=0", "--set", "data.window=40")
    _, told = regard_says(
        "train",
        "word2vec",
        "--data",
        text,
        "--out",
        run,
        "--steps",
        2,
        "--vectors",
        tmp_path / "v.txt",
        *small,
    )
    assert "2 of 3 text words (66.7%)" in told
    (tmp_path / "ask.txt").write_text("abc\nabc - ghij + defdef\n")
    out, _ = regard_says("run", run, tmp_path / "ask.txt", "--best", 2)
    first, *_ = out.splitlines()
    assert first.split("\t")[0] in ("ghij", "defdef")
    assert -1 <= float(first.split("\t")[1]) <= 1
    (tmp_path / "pairs.tsv").write_text("abc\tghij\t1\nabc\tdefdef\t2\nghij\tdefdef\t3\nabc\tx\t4\n")
    out, _ = regard_says("eval", run, "--data", tmp_path / "pairs.tsv")
    assert "on 3 examples" in out
    assert "coverage 0.7500" in out
    regard_says("export", run, tmp_path / "out.bin.gz", "--to", "word2vec-binary")
    out, _ = regard_says("import", tmp_path / "out.bin.gz", again)
    assert "vocabulary 7" in out
    out, _ = regard_says("run", again, tmp_path / "ask.txt", "--json")
    assert '"text"' in out
