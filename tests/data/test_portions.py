"""A corpus in portions: every line once a pass, the same batches every time, what is held out stays out."""

import gzip
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.holding_out import affordable
from regard.data.line_files import LineFiles
from regard.data.line_index import BLOCK
from regard.data.pairs import PairBatch, PairBatches, Pairs, PairsSpec
from regard.data.prefetch import prefetch
from regard.data.readers import PAIR
from regard.data.units import LEARNED_MARKS
from regard.training.stepping import batches_from
from tests.data.test_pairs import BPE, same, small_spec, some_pairs, write_tsv

Prepare = Callable[..., Pairs]


def spec_in_portions(**fields: object) -> PairsSpec:
    return small_spec(**({"whole_limit": 0, "portion_lines": 2 * BLOCK} | fields))


@pytest.fixture
def prepare() -> Iterator[Prepare]:
    """``Pairs.prepare`` of which every result is closed at the end; then no thread may be left."""
    made: list[Pairs] = []

    def make(*arguments: Any, **named: Any) -> Pairs:
        made.append(Pairs.prepare(*arguments, **named))
        return made[-1]

    yield make
    for pairs in made:
        pairs.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("making")]


def numbered(path: Path, count: int) -> Path:
    """Pairs that can be told apart."""
    rows = [(f"{a} {n}", f"{b} {n}") for n, (a, b) in enumerate(some_pairs(count))]
    return write_tsv(path, rows)


CHARACTERS = {"unit": "character", "size": 60}
"""Nothing is unknown, so that texts come back whole."""
EXACT = {"source": CHARACTERS, "target": CHARACTERS, "longest": 97}


def sources(pairs: Pairs, batches: PairBatches) -> list[str]:
    return [pairs.source_tokenizer.decode(ids) for batch in batches for ids in batch.source.ids.tolist()]


def equal(left: PairBatches, right: PairBatches) -> bool:
    return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))


def test_a_pass_meets_every_line_once_and_passes_differ(tmp_path: Path, prepare: Prepare) -> None:
    path = numbered(tmp_path / "x.tsv", 1900)
    pairs = prepare(spec_in_portions(held_out=0.0, **EXACT), path, seed=3)
    assert pairs.report.portions == 4
    expected = Counter(line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines())
    portions = [sources(pairs, pairs.epoch(number)) for number in range(8)]
    for begin in (0, 4):
        assert sum(map(Counter, portions[begin : begin + 4]), Counter()) == expected
        assert all(2 * BLOCK >= len(portion) >= BLOCK for portion in portions[begin : begin + 4])
    assert {frozenset(portion) for portion in portions[:4]} != {
        frozenset(portion) for portion in portions[4:]
    }


def test_a_pair_stays_a_pair(tmp_path: Path, prepare: Prepare) -> None:
    path = numbered(tmp_path / "x.tsv", 700)
    pairs = prepare(spec_in_portions(held_out=0.0, **EXACT), path)
    known = dict(line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    for batch in pairs.epoch(1):
        assert max(batch.source.ids.numel(), batch.target.ids.numel()) <= 97
        for source, target in zip(batch.source.ids.tolist(), batch.target.ids.tolist(), strict=True):
            assert known[pairs.source_tokenizer.decode(source)] == pairs.target_tokenizer.decode(target)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_epochs_are_functions_of_seed_and_number(dropout: float, tmp_path: Path, prepare: Prepare) -> None:
    bpe = BPE | {"dropout": dropout}
    spec = spec_in_portions(source=bpe, target=bpe, portion_lines=BLOCK)
    path = numbered(tmp_path / "x.tsv", 700)
    one = prepare(spec, path, seed=5)
    given = one.source_tokenizer, one.target_tokenizer
    two, other = (prepare(spec, path, seed=seed, tokenizers=given) for seed in (5, 6))
    in_turn = [one.epoch(number) for number in range(5)]
    for number in (4, 2, 3, 0):
        assert equal(two.epoch(number), in_turn[number])
    assert two.validation_texts() == one.validation_texts() != other.validation_texts()
    assert Counter(sources(other, other.epoch(0))) != Counter(sources(one, in_turn[0]))


def test_another_pass_draws_other_pieces_of_the_same_rows(tmp_path: Path, prepare: Prepare) -> None:
    spec = spec_in_portions(source=BPE | {"dropout": 0.4}, held_out=0.0)
    pairs = prepare(spec, numbered(tmp_path / "x.tsv", 200))
    assert pairs.report.portions == 1
    first, second = (
        {
            int(row): [piece for piece in ids if piece != LEARNED_MARKS.pad]
            for batch in pairs.epoch(number)
            for row, ids in zip(batch.rows, batch.source.ids.tolist(), strict=True)
        }
        for number in (0, 1)
    )
    decode = pairs.source_tokenizer.decode
    assert all(decode(first[row]) == decode(second[row]) for row in range(200))
    assert sum(first[row] != second[row] for row in range(200)) > 100


def test_any_place_can_be_gone_on_from(tmp_path: Path, prepare: Prepare) -> None:
    bpe = BPE | {"dropout": 0.2}
    spec, path = spec_in_portions(source=bpe, portion_lines=BLOCK), numbered(tmp_path / "x.tsv", 600)
    whole = list(islice(batches_from(prepare(spec, path, seed=2), 0, 0, prefetch), 160))
    assert whole[-1].epoch >= 2
    for place in (0, 70, 150):
        resumed = batches_from(prepare(spec, path, seed=2), whole[place].epoch, whole[place].index, prefetch)
        for expected, found in zip(whole[place : place + 9], resumed, strict=False):
            assert (found.epoch, found.index) == (expected.epoch, expected.index)
            assert same(found.batch, expected.batch)


def test_sources_held_out_are_never_trained_on(tmp_path: Path, prepare: Prepare) -> None:
    rows = some_pairs(1500)
    path = write_tsv(tmp_path / "x.tsv", rows + rows[::-1])
    pairs = prepare(spec_in_portions(held_out=0.1), path, seed=4)
    held = set(pairs.validation_texts()[0])
    assert 20 < len(pairs.validation_texts()[0]) <= 300
    assert set(zip(*pairs.validation_texts(), strict=True)) <= set(rows)
    trained = [
        text for number in range(pairs.report.portions) for text in sources(pairs, pairs.epoch(number))
    ]
    assert not held & set(trained)
    assert Counter(trained) == Counter(source for source, _ in rows * 2 if source not in held)
    assert len(trained) > 0.85 * 2 * len(rows)
    told = " ".join(pairs.epoch(number).notice or "" for number in range(pairs.report.portions))
    left = sum(int(count) for count in re.findall(r"(\d+) whose source is held out", told))
    assert left == 2 * len(rows) - len(trained), "what is neither trained on nor validated with is told"
    assert (pairs.report.validation, pairs.report.validation_seen) == (len(pairs.validation_texts()[0]), 0)


def test_holding_out_leaves_training_its_share() -> None:
    labels = ["a", "b", "c", "d"]
    sample = labels * 250 + ["rare"]
    assert affordable(["a", "rare", "b", "rare", "new"], sample, 0.02, seed=1) == [1, 3, 4]
    assert affordable(["a", "b"], ["a"] * 9 + ["b"], 0.02, seed=1) == [1]
    assert affordable(["a", "a"], ["a"] * 9, 0.5, seed=1) == []
    assert affordable([], labels, 0.5, seed=1) == []
    many = [str(number) for number in range(1000)]
    assert affordable(many[:30], many, 0.5, seed=1) == list(range(30))
    assert len(affordable(many, many, 0.02, seed=1)) == 20


def test_few_different_sources_can_still_be_trained_on(tmp_path: Path, prepare: Prepare) -> None:
    path = write_tsv(
        tmp_path / "x.tsv", [(word, f"{n}") for n in range(300) for word in ("one", "two", "six")]
    )
    pairs = prepare(spec_in_portions(held_out=0.1), path)
    held = set(pairs.validation_texts()[0])
    assert len(held) == 1
    assert set(sources(pairs, pairs.epoch(0))) == {"one", "two", "six"} - held


def test_given_validation_data_is_taken_whole(tmp_path: Path, prepare: Prepare) -> None:
    valid = [*some_pairs(53, seed=9), ("", "x"), ("one " * 40, "y")]
    path = numbered(tmp_path / "x.tsv", 700)
    pairs = prepare(spec_in_portions(), path, valid)
    assert pairs.validation_texts() == ([a for a, _ in valid[:53]], [b for _, b in valid[:53]])
    assert sum(len(batch.rows) for n in (0, 1) for batch in pairs.epoch(n)) == 700
    report = pairs.report
    assert report.validation_seen is None
    assert (report.validation, report.validation_empty, report.validation_too_long) == (53, 1, 1)


def test_what_is_left_out_is_told_where_it_is_met(tmp_path: Path, prepare: Prepare) -> None:
    rows = some_pairs(1100)
    rows[40], rows[700], rows[701] = ("", "x"), ("one " * 50, "y"), ("one", " ")
    path = write_tsv(tmp_path / "x.tsv", rows)
    pairs = prepare(spec_in_portions(held_out=0.0), path)
    assert pairs.report.portions == 3
    notices = [pairs.epoch(number).notice for number in range(6)]
    said = " ".join(notice for notice in notices[:3] if notice)
    assert sum(map(int, re.findall(r"(\d+) with an empty side", said))) == 2
    assert re.findall(r"(\d+) longer than longest=37 tokens", said) == ["1"]
    assert {f"{path}:41", f"{path}:702"} <= set(re.findall(r"[^ ,(]+\.tsv:\d+", said))
    assert notices[3:] == [None] * 3, "later passes leave out the same rows"
    told = list(islice(batches_from(pairs, 0, 0, prefetch), 200))
    assert [placed.notice for placed in told if placed.index == 0][:3] == notices[:3]
    assert not any(placed.notice for placed in told if placed.index > 0)
    counted = [int(count) for count in re.findall(r": (\d+) pairs", said)]
    assert counted == [
        sum(len(batch.rows) for batch in pairs.epoch(number)) for number in range(3) if notices[number]
    ]
    report = pairs.report
    assert report.sampled == sum(len(batch.rows) for batch in pairs.epoch(0)) + report.empty + report.too_long
    assert report.examples == 1100


def test_a_header_is_no_example(tmp_path: Path, prepare: Prepare) -> None:
    path = write_tsv(tmp_path / "x.tsv", [("target", "source"), *some_pairs(600)])
    pairs = prepare(spec_in_portions(held_out=0.0), path)
    assert pairs.report.examples == 600
    found = [text for n in range(pairs.report.portions) for text in sources(pairs, pairs.epoch(n))]
    assert Counter(found) == Counter(target for _, target in some_pairs(600))


def test_a_bad_line_is_told_when_its_portion_is_met(tmp_path: Path, prepare: Prepare) -> None:
    path = numbered(tmp_path / "x.tsv", 1900)
    pairs = prepare(spec_in_portions(held_out=0.0), path)
    content = path.read_bytes()
    for number in range(1, 4):
        whole = pairs._supply.blocks(number)[0] * BLOCK
        lines = content.split(b"\n")
        lines[whole + 5] = lines[whole + 5].replace(b"\t", b" ")
        pairs.close()
        path.write_bytes(b"\n".join(lines))
        pairs.epoch(number - 1)
        with pytest.raises(DataError, match=rf"x\.tsv:{whole + 6}: expected 2 columns between tabs, found 1"):
            pairs.epoch(number)


def test_nothing_to_train_on_is_said(tmp_path: Path, prepare: Prepare) -> None:
    path = write_tsv(tmp_path / "x.tsv", [("one " * 40, "a")] * 299 + [("", "a")])
    with pytest.raises(DataError, match=r"1 with an empty side, 299 longer than longest=37 tokens"):
        prepare(spec_in_portions(held_out=0.0), path)


def test_vocabularies_come_from_all_over_the_corpus(tmp_path: Path, prepare: Prepare) -> None:
    rows = [(f"word{n // 1000}", "x") for n in range(8000)]
    path = write_tsv(tmp_path / "x.tsv", rows)
    pairs = prepare(spec_in_portions(held_out=0.0, sample_bytes=20_000), path)
    known = {pairs.source_tokenizer.decode([i]) for i in range(4, pairs.source_tokenizer.size)}
    assert known == {f"word{n}" for n in range(8)}
    lines = LineFiles.of((path,), PAIR)
    assert lines is not None
    small = prepare(spec_in_portions(held_out=0.0, sample_bytes=1), path)
    assert small.source_tokenizer.size == 5, "the bound is kept"


def test_small_files_and_packed_ones_are_served_whole(tmp_path: Path, prepare: Prepare) -> None:
    rows = some_pairs(700)
    path, packed = write_tsv(tmp_path / "x.tsv", rows), tmp_path / "y.tsv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    size = path.stat().st_size
    whole = [
        prepare(small_spec(), path),
        prepare(small_spec(whole_limit=size), path),
        prepare(small_spec(whole_limit=0), packed),
        prepare(small_spec(whole_limit=0), rows),
    ]
    assert all(pairs.report.sampled is None and pairs.report.portions == 1 for pairs in whole)
    assert all(equal(pairs.epoch(1), whole[0].epoch(1)) for pairs in whole)
    portions = prepare(small_spec(whole_limit=size - 1), path)
    assert portions.report.sampled is not None
    # The same bytes, served differently: a run begun with one must not go on with the other.
    assert portions.fingerprint not in {pairs.fingerprint for pairs in whole}


def test_what_is_kept_in_the_cache_is_small_and_used(
    tmp_path: Path, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = numbered(tmp_path / "x.tsv", 3000), tmp_path / "cache"
    first = prepare(spec_in_portions(), path, cache=cache)
    assert sum(file.stat().st_size for file in cache.iterdir()) < 300
    monkeypatch.setattr("regard.data.line_index.LineIndex._scan", lambda *_: pytest.fail("read again"))
    again = prepare(spec_in_portions(), path, cache=cache)
    assert again.fingerprint == first.fingerprint
    assert equal(again.epoch(1), first.epoch(1))


def test_batches_stay_the_same_while_the_next_portion_is_made(tmp_path: Path, prepare: Prepare) -> None:
    pairs = prepare(spec_in_portions(), numbered(tmp_path / "x.tsv", 1900))
    epoch = pairs.epoch(0)
    before: list[PairBatch] = list(epoch)
    pairs.epoch(1)
    pairs.epoch(2)
    assert all(same(a, b) for a, b in zip(epoch, before, strict=True))
    assert isinstance(before[0].rows, np.ndarray)
