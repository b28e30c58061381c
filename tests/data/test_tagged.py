"""Tagged sentences: from columns to rows with a tag at the first piece of every word."""

import json
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data.column_files import ColumnSpec
from regard.data.tagged import TaggedSpec
from regard.data.tokenizers import TokenizerSpec

ROWS = [("Ada met Mrs Byron", "B-P O B-P I-P"), ("it rained", "O O"), ("in Bath", "O B-L")] * 4
WORDS = TokenizerSpec(unit="blank", size=60)


def spec(**fields: object) -> TaggedSpec:
    return TaggedSpec(**({"tokenizer": WORDS, "batch_tokens": 64, "longest": 16} | fields))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def served(data: TaggedSpec, rows: list[tuple[str, str]]) -> list[tuple[list[int], list[int], list[str]]]:
    """Every row of an epoch: tokens, places, tags."""
    prepared, found = data.prepare(rows, rows, 1, None, None), []
    names = prepared.lexicon.labels["label"].names
    for batch in prepared.epoch(0):
        assert batch.places is not None
        for row in range(len(batch.rows)):
            real = batch.places.real[row]
            tags = [names[number] for number in batch.wanted[row][: int(real.sum())].tolist()]
            ids = batch.tokens.ids[row][batch.tokens.real[row]].tolist()
            found.append((ids, batch.places.at[row][real].tolist(), tags))
    return found


def test_every_word_of_every_row_bears_its_tag() -> None:
    rows = served(spec(), ROWS)
    assert sorted(" ".join(tags) for _, _, tags in rows) == sorted(tags for _, tags in ROWS)
    for ids, places, tags in rows:
        assert places == list(range(1, len(tags) + 1))
        assert len(ids) == len(tags) + 2


def test_the_first_piece_of_a_word_bears_its_tag() -> None:
    """Whatever the words are cut into, what stands at the places are their beginnings."""
    for unit in ("wordpiece", "bpe", "byte_bpe", "character"):
        data = spec(tokenizer=TokenizerSpec(unit=unit, size=300), longest=40)
        prepared = data.prepare(ROWS, ROWS, 1, None, None)
        tokenizer = prepared.lexicon["text"]
        ((reading,),) = data.readings(tokenizer, [["Ada", "met", "Byron"]])
        pieces = tokenizer.pieces(reading.ids)
        begins = [pieces[place].lstrip("▁ ")[:1] or pieces[place + 1][:1] for place in reading.places]
        assert begins == ["A", "m", "B"], unit
        text = tokenizer.decode(reading.ids)
        assert text.split() == ["Ada", "met", "Byron"], unit


def test_a_long_sentence_is_split_between_words_and_loses_none() -> None:
    words = [f"w{n}" for n in range(11)]
    data = spec(longest=6)
    tokenizer = data.prepare(ROWS, ROWS, 1, None, None).lexicon["text"]
    (rows,) = data.readings(tokenizer, [words])
    assert [len(row.places) for row in rows] == [4, 4, 3]
    assert all(len(row.ids) <= 6 for row in rows)
    split = served(data, [(" ".join(words), " ".join(["B-X", *["I-X"] * 10]))] * 2)
    assert sorted(len(tags) for _, _, tags in split) == [3, 3, 4, 4, 4, 4]


def test_letters_stand_beside_the_words_they_spell() -> None:
    prepared = spec(letters=True).prepare([("Ada Lovelace", "B-P I-P")] * 2, ROWS[:1], 1, None, None)
    letters = prepared.epoch(0)[0].tokens.letters
    assert letters is not None
    spelled = [bytes(int(c) - 3 for c in word if c > 2).decode() for word in letters[0]]
    assert spelled == ["", "Ada", "Lovelace", ""]


def test_the_first_piece_of_a_cut_word_is_spelled_as_the_word() -> None:
    data = spec(letters=True, tokenizer=TokenizerSpec(unit="character", size=60), longest=40)
    tokenizer = data.prepare(ROWS, ROWS, 1, None, None).lexicon["text"]
    ((reading,),) = data.readings(tokenizer, [["Ada", "met"]])
    assert reading.words is not None
    assert {place: word for place, word in enumerate(reading.words) if word} == dict(
        zip(reading.places, ["Ada", "met"], strict=True)
    )


def test_spans_are_learned_in_the_scheme_asked_for() -> None:
    prepared = spec(scheme="bioes").prepare(ROWS, ROWS, 1, None, None)
    assert prepared.lexicon.labels["label"].names == ("B-P", "E-P", "O", "S-L", "S-P")


def test_a_tag_that_only_validation_data_have_does_not_stop_training() -> None:
    prepared = spec().prepare(ROWS, [("so rare", "O B-R")], 1, None, None)
    assert "B-R" in prepared.lexicon.labels["label"]


def test_a_tag_of_no_scheme_is_named_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "Ada B-P\nmet O\n\nit O\nrained W-X\n")
    with pytest.raises(DataError, match=r"a\.txt:4: tags: 'B-P' marks a span, but 'W-X' is of no tag scheme"):
        spec(scheme="bio").sentences(path)
    assert len(spec().sentences(path)) == 2  # tags as they are may be anything


def test_bad_columns_are_named_with_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "Ada NNP B-P\nmet VBD O\nByron B-P\n")
    with pytest.raises(DataError, match=r"a\.txt:3: expected 3 columns between blanks, found 2"):
        spec().records(str(path))
    with pytest.raises(DataError, match=r"a\.txt:1: expected a column 7, found 3 columns"):
        spec(columns=ColumnSpec(tag=7)).records(str(path))


def test_given_sentences_of_unequal_length_are_named() -> None:
    with pytest.raises(DataError, match=r"given sentences:2: 2 words, but 1 tags"):
        spec().prepare([("a", "O"), ("a b", "O")], ROWS, 1, None, None)


def test_blanks_inside_words_do_not_part_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"words": ["New York", "is\u00a0big"], "tags": ["B-L", "O"]}) + "\n")
    ((words, tags),) = spec().records(str(path))
    assert words.split(" ") == ["New\u00a0York", "is\u00a0big"]
    assert tags == "B-L O"


def test_a_folder_is_judged_on_its_test_part(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        write(tmp_path / f"{name}.txt", f"{name} O\n")
    assert spec().records(str(tmp_path)) == [("test", "O")]
    train, valid = spec().find(str(tmp_path), None)
    assert [row.words for row in spec().sentences(train)] == [("train",)]
    assert [row.words for row in spec().sentences(valid)] == [("valid",)]
