"""Files of word vectors: gensim reads what we write and we read what it writes; what is broken is named."""

import gzip
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.apps.exchange import export_run, import_run
from regard.core.errors import DataError, UsageError
from regard.interop.vector_files import FORMATS, read_vectors, width_of, write_vectors
from tests.apps.toys import examples, toy

WORDS = ["the", "naïve", "3.14", "🙂", "-", "7"]
VECTORS = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def keyed_vectors():  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gensim's own
        models = pytest.importorskip("gensim.models")
    return models.KeyedVectors


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("form", FORMATS)
def test_what_is_written_is_read_to_the_bit(form: str, packed: str, tmp_path: Path) -> None:
    path = tmp_path / f"vectors.txt{packed}"
    write_vectors(path, WORDS, VECTORS, form)
    words, vectors = read_vectors(path)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)
    assert width_of(path) == 5


def test_only_what_is_wanted_is_kept(tmp_path: Path) -> None:
    for form in FORMATS:
        write_vectors(tmp_path / form, WORDS, VECTORS, form)
        words, vectors = read_vectors(tmp_path / form, {"7", "the", "other"})
        assert words == ["the", "7"]
        np.testing.assert_array_equal(vectors, VECTORS[[0, 5]])


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("form", FORMATS)
def test_gensim_reads_what_we_write(form: str, tmp_path: Path, keyed_vectors) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "vectors"
    write_vectors(path, WORDS, VECTORS, form)
    theirs = keyed_vectors.load_word2vec_format(
        str(path), binary=form == "word2vec-binary", no_header=form == "glove"
    )
    assert theirs.index_to_key == WORDS
    np.testing.assert_array_equal(theirs.vectors, VECTORS)


@pytest.mark.parametrize("form", FORMATS)
def test_we_read_what_gensim_writes(form: str, tmp_path: Path, keyed_vectors) -> None:  # type: ignore[no-untyped-def]
    theirs = keyed_vectors(5)
    theirs.add_vectors(WORDS, VECTORS)
    path = tmp_path / "vectors"
    theirs.save_word2vec_format(str(path), binary=form == "word2vec-binary", write_header=form != "glove")
    words, vectors = read_vectors(path)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)


def test_bytes_as_the_authors_program_writes_them(tmp_path: Path) -> None:
    """A line feed after every vector, and values whose bytes look like blanks and line feeds."""
    path = tmp_path / "v.bin"
    odd = struct.unpack("<f", b" \n \n")[0]
    body = b"a " + struct.pack("<2f", 1.5, odd) + b"\n" + b"b " + struct.pack("<2f", odd, -2.0) + b"\n"
    path.write_bytes(b"2 2\n" + body)
    words, vectors = read_vectors(path)
    assert words == ["a", "b"]
    assert vectors.tolist() == [[1.5, odd], [odd, -2.0]]


def test_a_word_with_blanks_in_it_is_one(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("a 1 2\n. . . 3 4\nat mail@x.org 5 6\n")
    words, vectors = read_vectors(path)
    assert words == ["a", ". . .", "at mail@x.org"]
    assert vectors.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2\nb 3\n", r"v.txt:2: expected a word and 2 values, found 1 values"),
        (b"a 1 2\nb 3 4 5\n", r"v.txt:2: expected a word and 2 values, found 3 values"),
        (b"2 2\na 1 2\nb 3\n", r"v.txt:3: expected a word and 2 values, found 1 values"),
        (b"a 1 2\nb 3 x\n", r"v.txt:2: expected a number, found 'x'"),
        (b"a 1 2\nb nan 1\n", r"v.txt:2: expected numbers, found nan"),
        (b"a 1 2\nb 3 4\na 5 6\n", r"v.txt:3: 'a' stands here twice, first at line 1"),
        (b"3 2\na 1 2\nb 3 4\n", r"v.txt:1: its first line says 3 words, but there are 2"),
        (b"a 1 2\n\xff 3 4\n", r"v.txt:2: not valid UTF-8: 0xff"),
        (b"alone\n", r"v.txt:1: expected a word and its values, found 'alone' alone"),
        (b"", r"v.txt:1: the file is empty"),
        (b"2 2\na " + bytes(8) + b"\nb " + bytes(5), r"v.txt: ends in the middle of word 2.*not complete"),
        (b"1 2\na " + bytes(8) + b"\nb " + bytes(8), r"v.txt: goes on after the 1 words"),
        (b"2 2\na " + bytes(8) + b"\na " + bytes(8), r"v.txt:2: 'a' stands here twice, first at word 1"),
    ],
)
def test_what_is_broken_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vectors(path)


def test_half_a_packed_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "v.txt.gz"
    path.write_bytes(gzip.compress(b"".join(b"w%d 1 2\n" % n for n in range(9000)))[:-300])
    with pytest.raises(DataError, match=r"v.txt.gz: damaged gzip file"):
        read_vectors(path)


def test_a_word_that_a_file_cannot_hold_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'a b' has a blank in it"):
        write_vectors(tmp_path / "v.txt", ["a b"], VECTORS[:1], "glove")
    assert not list(tmp_path.iterdir())


def test_a_file_becomes_a_run_and_a_file_again(tmp_path: Path) -> None:
    write_vectors(tmp_path / "v.txt", WORDS, VECTORS, "word2vec")
    done = import_run(tmp_path / "v.txt", tmp_path / "run")
    assert done.vocabulary == len(WORDS) + 4
    run = regard.load(tmp_path / "run")
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    cosines = unit @ unit[0]
    cosines[0] = -2
    assert run("the") == WORDS[int(cosines.argmax())]
    for form in FORMATS:
        export_run(tmp_path / "run", tmp_path / f"out.{form}", form)
        words, vectors = read_vectors(tmp_path / f"out.{form}")
        assert words == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)


def test_any_model_gives_its_table_away(tmp_path: Path) -> None:
    """Also one that is no model of word vectors."""
    spec = toy("classifier", "data.tokenizer={unit: word, size: 100}")
    given = [(text, text[0]) for text in examples("word2vec", 12)]
    run = regard.train(spec, given, tmp_path / "run", valid=given, steps=1).run
    done = export_run(tmp_path / "run", tmp_path / "v.txt", "glove")
    words, vectors = read_vectors(tmp_path / "v.txt")
    assert sorted(words) == ["abc", "defdef", "ghij"]
    assert done.vocabulary == 3
    own = run.model.encoder.embedding.tokens.weight.detach().numpy()  # type: ignore[union-attr]
    number = run.lexicon["text"].encode("ghij")[0]
    np.testing.assert_array_equal(vectors[words.index("ghij")], own[number])
