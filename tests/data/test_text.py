"""Running text: documents, passages, streams, windows and lanes."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import DataError
from regard.data import documents as reading
from regard.data.documents import Share, documents_of, passages, text_files, text_splits
from regard.data.encoding import Shelf
from regard.data.text import TextSpec, encode_text
from regard.data.text_batches import TextBatches, in_order, running_lanes, shuffled_windows
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.data.units import LEARNED_MARKS

CHARACTERS = TokenizerSpec(unit="character", size=500)
END = LEARNED_MARKS.end


def joined(documents: reading.Documents) -> list[str]:
    """Whole documents, however they were cut."""
    found, held = [], ""
    for passage in documents:
        held += passage.text
        if passage.ends:
            found.append(held)
            held = ""
    assert held == ""
    return found


# ---------------------------------------------------------------- where text comes from


def test_a_file_is_one_document_or_one_a_line(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\n\ntwo three")
    assert joined(documents_of(file, "file")) == ["one\n\ntwo three\n"]
    assert joined(documents_of(file, "line")) == ["one", "", "two three"]


def test_files_folders_patterns_and_packed_files_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("b\n")
    (tmp_path / "sub" / "c.txt").write_text("c\n")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\n"))
    (tmp_path / "d.jsonl").write_text(json.dumps({"text": "d\nd"}) + "\n")
    (tmp_path / "README.md").write_text("not text to learn from")
    everything = ["a\n", "b\n", "d\nd", "c\n"]
    assert joined(documents_of(tmp_path, "file")) == everything
    assert joined(documents_of(f"{tmp_path}/b.txt, {tmp_path}/a.txt.gz", "file")) == ["b\n", "a\n"]
    assert joined(documents_of(f"{tmp_path}/**/*.txt", "file")) == ["b\n", "c\n"]
    with pytest.raises(DataError, match="no file matches"):
        text_files(f"{tmp_path}/*.nothing")
    with pytest.raises(DataError, match=r"b\.txt"):
        text_files(f"{tmp_path}/bb.txt")


@pytest.mark.parametrize("form", ["{0}/a.txt", "{0}/a.txt,{0}/b.txt", "{0}/*.txt", "{0}"])
def test_what_a_person_types_is_read_not_learned(form: str, tmp_path: Path) -> None:
    """The name of a file must never be taken for its text."""
    (tmp_path / "a.txt").write_text("aaaa bbbb")
    (tmp_path / "b.txt").write_text("bbbb aaaa")
    spec = TextSpec(tokenizer=CHARACTERS, held_out=0.0)
    for typed in (form.format(tmp_path), Path(form.format(tmp_path))):
        if "," in form and typed != form.format(tmp_path):
            continue
        train, _ = spec.find(typed, None)
        prepared = spec.prepare(train, str(tmp_path / "b.txt"), 1, None, None)
        pieces = prepared.lexicon["text"].vocabulary()
        assert set(pieces) - {"<pad>", "<unk>", "<s>", "</s>"} == set("ab \n")
        assert prepared.report.validation == 11


def test_a_folder_may_say_what_is_for_what(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text(name)
    splits = text_splits(tmp_path)
    assert [Path(files[0]).stem for files in splits if files] == ["train", "valid", "test"]
    assert TextSpec().records(str(tmp_path)) == [("test\n",)]


@given(text=st.text(alphabet="ab \n", max_size=60), size=st.integers(1, 9))
def test_passages_lose_nothing_and_tear_no_word(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PASSAGE", size)
        parts = list(passages(text))
    assert "".join(part.text for part in parts) == text
    assert [part.ends for part in parts] == [False] * (len(parts) - 1) + [True]
    for before, after in pairwise(parts):
        assert after.text.startswith(" ") or " " not in before.text[1:]


@given(texts=st.lists(st.text(alphabet="ab ", max_size=12), max_size=6), at=st.integers(0, 40))
def test_two_shares_are_the_whole(texts: list[str], at: int) -> None:
    whole = documents_of(texts, "file")
    first, rest = Share(whole, at, rest=False), Share(whole, at, rest=True)
    assert "".join(first.texts) + "".join(rest.texts) == "".join(texts)
    assert sum(map(len, first.texts)) <= at


@pytest.mark.parametrize("unit", ["character", "byte_bpe", "bpe", "blank"])
def test_long_documents_are_encoded_as_if_they_were_not_cut(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "der hund  sieht die katze\nund  die katze sieht den hund nicht " * 3
    tokenizer = Tokenizer.train(TokenizerSpec.from_dict({"unit": unit, "size": 300}), [text])
    whole = encode_text(documents_of([text], "file"), tokenizer, Shelf.none())
    monkeypatch.setattr(reading, "PASSAGE", 17)
    cut = encode_text(documents_of([text], "file"), tokenizer, Shelf.none())
    assert cut.values.tolist() == whole.values.tolist()
    assert (cut.documents, cut.words, cut.characters) == (1, len(text.split()) + 1, whole.characters)


def test_a_stream_too_large_for_memory_is_mapped_and_equal(tmp_path: Path) -> None:
    texts = [f"document number {number}" for number in range(50)]
    spec = TextSpec(tokenizer=CHARACTERS, window=8, rows=4)
    small = spec.prepare(texts, None, 1, None, tmp_path)
    large = spec.override(["memory_limit=64"]).prepare(texts, None, 1, None, tmp_path)
    assert large.report.mapped
    assert not small.report.mapped
    assert np.array_equal(large.stream, small.stream)
    assert not any(tmp_path.iterdir())


def test_nothing_to_read_is_said() -> None:
    with pytest.raises(DataError, match="no text to train on"):
        TextSpec(tokenizer=CHARACTERS).prepare([], None, 1, None, None)


def test_documents_are_kept_apart_by_ends() -> None:
    prepared = TextSpec(tokenizer=CHARACTERS, held_out=0.0).prepare(["ab", "c"], ["a"], 1, None, None)
    a, b, c = (prepared.lexicon["text"].encode(letter)[0] for letter in "abc")
    assert prepared.stream.tolist() == [END, a, b, END, c, END]
    assert prepared.report.documents == 2
    turned = TextSpec(tokenizer=CHARACTERS, held_out=0.0, backwards=True)
    assert turned.prepare(["ab", "c"], ["a"], 1, None, None).stream.tolist() == [END, c, END, b, a, END]


# ---------------------------------------------------------------- windows and lanes

STREAMS = st.integers(2, 200).map(lambda size: np.arange(size, dtype=np.uint16))


def predicted(batches: TextBatches) -> list[int]:
    """What is to be predicted, in order; every prediction follows its token."""
    found = []
    for batch in batches:
        given_, wanted = batch.given.ids.numpy(), batch.wanted.numpy()
        assert ((given_ + 1) % len(batches._stream) == wanted).all()
        assert batch.given.real.all()
        found += wanted.flatten().tolist()
    return found


@given(stream=STREAMS, window=st.integers(1, 20), rows=st.integers(1, 6), epoch=st.integers(0, 3))
def test_shuffled_windows_do_not_overlap_and_leave_out_less_than_one(
    stream: np.ndarray, window: int, rows: int, epoch: int
) -> None:
    batches = shuffled_windows(stream, window, rows, 5, epoch)
    found = predicted(batches)
    assert len(set(found)) == len(found)
    assert len(found) > len(stream) - 1 - window
    assert predicted(shuffled_windows(stream, window, rows, 5, epoch)) == found


def test_epochs_differ() -> None:
    stream = np.arange(100, dtype=np.uint16)
    assert predicted(shuffled_windows(stream, 7, 3, 5, 0)) != predicted(shuffled_windows(stream, 7, 3, 5, 1))
    assert predicted(running_lanes(stream, 7, 3, 5, 1)) != predicted(running_lanes(stream, 7, 3, 5, 2))


@given(
    stream=STREAMS,
    window=st.integers(1, 20),
    rows=st.integers(1, 6),
    epoch=st.integers(0, 3),
    jitter=st.sampled_from([0.0, 3.0]),
)
def test_each_lane_goes_on_where_it_stopped(
    stream: np.ndarray, window: int, rows: int, epoch: int, jitter: float
) -> None:
    batches = running_lanes(stream, window, rows, 5, epoch, jitter)
    assert [batch.continues for batch in batches] == [False] + [True] * (len(batches) - 1)
    size = len(stream)
    for before, after in zip(list(batches)[:-1], list(batches)[1:], strict=True):
        assert (before.wanted[:, -1] == after.given.ids[:, 0]).all()
    found = [int(value) for batch in batches for value in batch.wanted.flatten()]
    assert len(found) > size - 1 - rows
    assert all(int(b) == (int(a) + 1) % size for batch in batches
               for a, b in zip(batch.given.ids.flatten(), batch.wanted.flatten(), strict=True))  # fmt: skip


@given(stream=STREAMS, window=st.integers(1, 20), rows=st.integers(1, 6))
def test_evaluation_predicts_everything_exactly_once(stream: np.ndarray, window: int, rows: int) -> None:
    assert sorted(predicted(in_order(stream, window, rows, running=False))) == list(range(1, len(stream)))


@given(rows=st.integers(1, 9), parts=st.integers(1, 4))
def test_a_batch_splits_into_its_rows(rows: int, parts: int) -> None:
    stream = np.arange(rows * 300 + 1, dtype=np.uint16)
    batch = running_lanes(stream, 300, rows, 1, 0)[0]
    shards = batch.split(parts)
    assert len(shards) == min(parts, rows)
    assert np.concatenate([shard.rows for shard in shards]).tolist() == batch.rows.tolist()
    assert np.concatenate([shard.wanted.numpy() for shard in shards]).tolist() == batch.wanted.tolist()
