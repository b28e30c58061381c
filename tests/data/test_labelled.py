"""Labelled texts: from tables of any layout to batches, with errors that say where."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.core.errors import DataError, RunError, UsageError
from regard.data.examples import ExampleBatch
from regard.data.labelled import LabelledSpec
from regard.data.labels import Labels
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import TokenizerSpec

CHARACTERS = TokenizerSpec(unit="character", size=60)
ROWS = [("good one", "yes"), ("bad", "no"), ("fine thing", "yes"), ("awful", "no"), ("so so", "perhaps")] * 6


def spec(**fields: object) -> LabelledSpec:
    return LabelledSpec(tokenizer=CHARACTERS, batch_tokens=64, longest=16, **fields)


def real_ids(batch: ExampleBatch) -> list[list[int]]:
    return [ids[real].tolist() for ids, real in zip(batch.tokens.ids, batch.tokens.real, strict=True)]


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_every_example_is_served_once_an_epoch_with_its_class() -> None:
    prepared = spec().prepare(ROWS, ROWS[:5], 3, None, None)
    labels = prepared.lexicon.labels["label"]
    assert labels.names == ("no", "perhaps", "yes")
    for number in (0, 1):
        seen = []
        for batch in prepared.epoch(number):
            assert batch.tokens.ids.numel() <= 64
            for ids, real, wanted, row in zip(*batch.tokens[:2], batch.wanted, batch.rows, strict=True):
                text = prepared.lexicon["text"].decode(ids[real].tolist())
                assert (text, labels.names[int(wanted)]) == ROWS[row]
                seen.append(int(row))
        assert sorted(seen) == list(range(len(ROWS)))


def test_an_epoch_is_a_function_of_seed_and_number() -> None:
    one, two = (spec().prepare(ROWS, ROWS[:5], 3, None, None) for _ in range(2))
    for first, second in zip(one.epoch(4), two.epoch(4), strict=True):
        assert np.array_equal(first.rows, second.rows)
    order = [row for batch in one.epoch(4) for row in batch.rows]
    assert order != [row for batch in one.epoch(5) for row in batch.rows]


def test_a_batch_in_parts_is_the_batch() -> None:
    rows = [(f"{one} {n}", other, "ab"[n % 2]) for n in range(60) for one, other in ROWS[:4]]
    two = LabelledSpec(tokenizer=CHARACTERS, batch_tokens=4096, longest=16, texts=2)
    whole = two.prepare(rows, ROWS2, 1, None, None).epoch(0)[0]
    parts = whole.split(3)
    assert len(parts) == 3
    assert sum(len(part.rows) for part in parts) == len(whole.rows)
    assert torch.equal(torch.cat([part.wanted for part in parts]), whole.wanted)
    assert [row for part in parts for row in real_ids(part)] == real_ids(whole)
    assert whole.tokens.segments is not None


ROWS2 = [("ab", "cd", "a"), ("ef", "gh", "b")]


def test_the_second_text_has_segment_one_up_to_its_end() -> None:
    prepared = spec(texts=2).prepare(ROWS2, ROWS2, 1, None, None)
    for batch in prepared.epoch(0):
        assert batch.tokens.segments is not None
        assert batch.tokens.segments.tolist() == [[0, 0, 0, 0, 1, 1, 1]] * len(batch.rows)


@pytest.mark.parametrize(
    ("name", "lines", "columns"),
    [
        ("a.tsv", ["sentence\tlabel", "good\tyes", "bad\tno"], ()),
        ("a.tsv", ["label\ttext", "yes\tgood", "no\tbad"], ()),
        ("a.tsv", ["good\tyes", "bad\tno"], ()),
        ("a.tsv", ["yes\tx\tgood", "no\ty\tbad"], ("label", "-", "text")),
        ("a.csv", ["class,text", "yes,good", "no,bad"], ()),
        ("a.csv", ["yes,good", "no,bad"], ("label", "text")),
        ("a.jsonl", ['{"text": "good", "label": "yes"}', '{"text": "bad", "label": "no"}'], ()),
    ],
)
def test_tables_of_any_layout(tmp_path: Path, name: str, lines: list[str], columns: tuple[str, ...]) -> None:
    path = write(tmp_path / name, *lines)
    assert spec(columns=columns).records(str(path)) == [("good", "yes"), ("bad", "no")]
    packed = tmp_path / f"b{path.suffix}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert spec(columns=columns).records(str(packed)) == [("good", "yes"), ("bad", "no")]


def test_columns_that_lack_a_field_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "yes\tgood")
    with pytest.raises(UsageError, match=r"names no column 'text'.*needed are 'text', 'label'"):
        spec(columns=("label", "txt")).records(str(path))


def test_a_row_of_another_width_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "yes\tgood", "no")
    with pytest.raises(DataError, match=r"a\.tsv:2: expected 2 columns between tabs, found 1"):
        spec(columns=("label", "text")).records(str(path))


def test_a_class_that_was_never_learned_is_named_with_its_line() -> None:
    with pytest.raises(DataError, match=r"given pairs:2.*no class 'yess'.*did you mean 'yes'"):
        spec().prepare(ROWS, [("x", "yes"), ("y", "yess")], 1, None, None)


def test_numbers_must_be_numbers() -> None:
    numbers = spec(wanted="number")
    prepared = numbers.prepare([("a", "1.5"), ("b", "-2")], [("a", "3")], 1, None, None)
    (batch,) = prepared.epoch(0)
    assert dict(zip(batch.rows.tolist(), batch.wanted[:, 0].tolist(), strict=True)) == {0: 1.5, 1: -2.0}
    assert not prepared.lexicon.labels
    for bad in ("much", "nan", "inf"):
        with pytest.raises(DataError, match=f"given pairs:1.*expected a number, found '{bad}'"):
            numbers.prepare([("a", bad)], [("a", "3")], 1, None, None)


def test_what_is_cut_and_left_out_is_told() -> None:
    rows = [("x" * 40, "a"), ("y", "b"), ("", "a"), (" ", "b")]
    said = spec().prepare(rows, rows[:1], 1, None, None).report.summary()
    assert any("1 examples were cut to longest=16 tokens" in line for line in said)
    assert any("2 rows with an empty field were left out" in line for line in said)


def test_held_out_rows_are_not_trained_on() -> None:
    rows = [(f"text {n}", "ab"[n % 2]) for n in range(50)]
    prepared = spec(held_out=0.2).prepare(rows, None, 7, None, None)
    held = {text for text, _ in prepared.examples(100)}
    trained = {rows[row][0] for batch in prepared.epoch(0) for row in batch.rows}
    assert len(held) == 10
    assert prepared.report.examples == 40
    assert len(trained) == 40


def test_a_lexicon_comes_back_from_its_files() -> None:
    lexicon = spec().prepare(ROWS, ROWS[:5], 1, None, None).lexicon
    files = lexicon.files()
    assert set(files) == {"tokenizer.json", "label.labels.json"}
    again = Lexicon.read(("text",), files, files.__getitem__, Path())
    assert again.labels == lexicon.labels
    assert again["text"].vocabulary() == lexicon["text"].vocabulary()
    assert again.sizes == lexicon.sizes == {"text": lexicon["text"].size, "label": 3}


@pytest.mark.parametrize("damaged", ["", "[]", '{"labels": 3}', '{"labels": [1]}'])
def test_damaged_labels_are_refused(damaged: str) -> None:
    with pytest.raises(RunError, match=r"x\.json"):
        Labels.from_json(damaged, "x.json")
