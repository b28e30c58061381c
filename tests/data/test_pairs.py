"""From files to batches: nothing lost in silence, nothing on both sides, the same batches every time."""

import gc
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.core.errors import DataError, UsageError
from regard.core.state import tensors_of
from regard.data.holding_out import held_out
from regard.data.pairs import PairBatch, Pairs, PairsSpec
from regard.data.readers import Record
from regard.data.units import LEARNED_MARKS

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def some_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    random = np.random.default_rng(seed)
    sources = [" ".join(random.choice(WORDS, size=random.integers(1, 12))) for _ in range(count)]
    return [(source, " ".join(reversed(source.split()))) for source in sources]


def small_spec(**fields: object) -> PairsSpec:
    word = {"unit": "word", "size": 60}
    return PairsSpec.from_dict({"source": word, "target": word, "batch_tokens": 97, "longest": 37} | fields)


BPE = {"unit": "bpe", "size": 90}


def write_tsv(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return path


def same(left: PairBatch, right: PairBatch) -> bool:
    tensors = zip(tensors_of(left[:2]), tensors_of(right[:2]), strict=True)
    return np.array_equal(left.rows, right.rows) and all(a.equal(b) for a, b in tensors)


def test_batches_hold_what_the_file_holds(tmp_path: Path) -> None:
    rows = some_pairs(211)
    pairs = Pairs.prepare(small_spec(held_out=0.0), write_tsv(tmp_path / "x.tsv", rows), seed=3)
    found: dict[int, tuple[str, str]] = {}
    for batch in pairs.epoch(0):
        assert max(batch.source.ids.numel(), batch.target.ids.numel()) <= 97
        for number, source, target in zip(batch.rows, batch.source.ids, batch.target.ids, strict=True):
            found[int(number)] = (
                pairs.source_tokenizer.decode(source.tolist()),
                pairs.target_tokenizer.decode(target.tolist()),
            )
    assert [found[number] for number in range(211)] == rows


def test_marks_and_padding_stand_where_models_expect_them() -> None:
    pairs = Pairs.prepare(small_spec(held_out=0.0), some_pairs(101))
    for batch in pairs.epoch(0):
        assert batch.source.ids.dtype == torch.int64
        for tokens, first in ((batch.source, None), (batch.target, LEARNED_MARKS.begin)):
            for ids, real in zip(tokens.ids.tolist(), tokens.real.tolist(), strict=True):
                length = sum(real)
                assert real == [True] * length + [False] * (len(ids) - length)
                assert ids[length - 1] == LEARNED_MARKS.end
                assert ids.count(LEARNED_MARKS.end) == 1
                assert set(ids[length:]) <= {LEARNED_MARKS.pad}
                assert (ids[0] == LEARNED_MARKS.begin) == (first is not None)
        moved = batch.to("cpu")
        assert same(moved, batch)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_epochs_are_functions_of_seed_and_number(dropout: float) -> None:
    spec = small_spec(source=BPE | {"dropout": dropout}, target=BPE | {"dropout": dropout})
    one = Pairs.prepare(spec, some_pairs(151), seed=5)
    two = Pairs.prepare(
        spec, iter(some_pairs(151)), seed=5, tokenizers=(one.source_tokenizer, one.target_tokenizer)
    )
    two.epoch(1)
    left, right = one.epoch(2), two.epoch(2)
    assert len(left) == len(right)
    assert all(same(left[i], right[i]) for i in reversed(range(len(left))))
    assert not all(same(a, b) for a, b in zip(left, one.epoch(3), strict=False))


def test_dropout_changes_pieces_but_never_texts_or_limits() -> None:
    bpe = BPE | {"dropout": 0.4}
    pairs = Pairs.prepare(small_spec(source=bpe, target=bpe, held_out=0.0), some_pairs(151))
    seen: dict[int, set[tuple[int, ...]]] = {}
    texts: dict[int, set[str]] = {}
    for number in range(3):
        for batch in pairs.epoch(number):
            assert max(batch.source.ids.numel(), batch.target.ids.numel()) <= 97
            assert batch.target.ids.shape[1] <= 37
            for row, ids in zip(batch.rows.tolist(), batch.source.ids.tolist(), strict=True):
                seen.setdefault(row, set()).add(tuple(ids))
                texts.setdefault(row, set()).add(pairs.source_tokenizer.decode(ids))
    assert all(len(variants) == 1 for variants in texts.values())
    assert sum(len(variants) > 1 for variants in seen.values()) > 100
    validated = Pairs.prepare(small_spec(source=bpe, target=bpe), some_pairs(151))
    assert all(same(a, b) for a, b in zip(validated.validation(), validated.validation(), strict=True))


def test_the_two_sides_drop_independently() -> None:
    bpe = BPE | {"dropout": 0.5}
    same_text = [(source, source) for source, _ in some_pairs(61)]
    pairs = Pairs.prepare(small_spec(source=bpe, target=bpe, joint=True, held_out=0.0), same_text)
    assert pairs.source_tokenizer is pairs.target_tokenizer
    equal = total = 0
    for batch in pairs.epoch(0):
        for source, target in zip(batch.source.ids.tolist(), batch.target.ids.tolist(), strict=True):
            total += 1
            equal += [i for i in source if i > 3] == [i for i in target if i > 3]
    assert equal < 0.3 * total


def test_rows_are_held_out_by_content_and_never_on_both_sides() -> None:
    rows = some_pairs(997) + [("two five", "x"), ("two five", "y")] * 5
    pairs = Pairs.prepare(small_spec(held_out=0.1), rows, seed=1)
    sources, targets = pairs.validation_texts()
    held = set(sources)
    assert 0.07 * len(rows) < len(sources) <= round(0.1 * len(rows))
    trained = {
        pairs.source_tokenizer.decode(ids) for batch in pairs.epoch(0) for ids in batch.source.ids.tolist()
    }
    assert trained | held == {source for source, _ in rows}
    assert not trained & held
    assert pairs.report.validation_seen == 0
    assert pairs.report.examples + pairs.report.validation == len(rows)
    assert set(zip(sources, targets, strict=True)) <= set(rows)
    shuffled = Pairs.prepare(small_spec(held_out=0.1), rows[::-1], seed=1)
    assert set(shuffled.validation_texts()[0]) == held
    assert set(Pairs.prepare(small_spec(held_out=0.1), rows, seed=2).validation_texts()[0]) != held


@pytest.mark.parametrize(
    ("sources", "share", "most", "expected"),
    [
        (["a"] * 9, 0.5, 100, {0}),
        (["a", "b"], 0.01, 100, {1}),
        ([str(i) for i in range(1000)], 0.02, 100, {20}),
        ([str(i) for i in range(1000)], 0.5, 30, {30}),
        ([str(i) for i in range(1000)], 0.0, 30, {0}),
        (["a"] * 500 + ["b"] * 500, 0.02, 30, {500}),
    ],
)
def test_how_many_rows_are_held_out(sources: list[str], share: float, most: int, expected: set[int]) -> None:
    for seed in range(5):
        assert int(held_out(sources, share, most, seed).sum()) in expected


def test_validation_batches_point_into_the_texts() -> None:
    valid = some_pairs(53, seed=9)
    pairs = Pairs.prepare(small_spec(), some_pairs(101), valid)
    assert pairs.validation_texts() == ([a for a, _ in valid], [b for _, b in valid])
    batches = pairs.validation()
    assert sorted(int(row) for batch in batches for row in batch.rows) == list(range(53))
    for batch in batches:
        for row, ids in zip(batch.rows, batch.target.ids.tolist(), strict=True):
            assert pairs.target_tokenizer.decode(ids) == valid[row][1]


def test_validation_may_be_left_out_altogether() -> None:
    pairs = Pairs.prepare(small_spec(held_out=0.0), some_pairs(31))
    assert len(pairs.validation()) == 0
    assert pairs.validation_texts() == ([], [])


def test_the_report_counts_what_was_left_out(tmp_path: Path) -> None:
    rows = [
        ("one two", "a b"),
        ("", "x"),
        ("one " * 36, "a"),
        ("three", "  "),
        ("one", "b " * 35),
        ("four", "a"),
    ]
    valid = [("one two", "a"), ("two " * 40, "b"), ("", "c"), ("never", "a")]
    paths = write_tsv(tmp_path / "x.tsv", rows), write_tsv(tmp_path / "v.tsv", valid)
    report = Pairs.prepare(small_spec(), *paths).report
    assert (report.examples, report.empty, report.too_long) == (3, 2, 1)
    assert report.first_empty == (f"{tmp_path}/x.tsv:2", f"{tmp_path}/x.tsv:4")
    assert (report.validation, report.validation_too_long, report.validation_empty) == (2, 1, 1)
    assert report.validation_seen == 1
    assert (report.source_tokens, report.target_tokens) == (2 + 1 + 1, 2 + 35 + 1)
    assert (report.source_unknown, report.mapped) == (0.0, False)
    assert report.data == str(paths[0])
    assert 0 <= report.padding_share < 1
    assert report.seconds > 0


def test_unknown_words_are_counted() -> None:
    spec = small_spec(source={"unit": "word", "size": 5}, held_out=0.0)
    report = Pairs.prepare(spec, [("b a", "x"), ("b b", "x"), ("c b b", "x")]).report
    assert report.source_vocabulary == 5
    assert report.source_unknown == pytest.approx(2 / 7)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("", "a"), ("b", "")], r"given pairs: no pair is left to train on: 2 with an empty side"),
        ([("one " * 40, "a")], r"no pair is left to train on: 1 longer than longest=37 tokens"),
        ([], r"no pair is left to train on: there are none"),
        (iter([("a", "b"), ("c",)]), r"given pairs:2: expected a pair of texts, got \('c',\)"),
        ([("a", "b\ud800")], r"given pairs:1: target: half a surrogate pair at character 2"),
    ],
)
def test_nothing_to_train_on_is_said(rows: Iterable[tuple[str, str]], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Pairs.prepare(small_spec(), rows)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"joint": True, "target": {"size": 70}}, r"joint=True .*unit: 'word' and 'bpe', size: 60 and 70"),
        ({"longest": 200}, r"longest=200 does not fit into batch_tokens=97"),
        ({"held_out": 0.9}, r"held_out: got 0\.9"),
    ],
)
def test_impossible_specs_name_both_values(fields: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        small_spec(**fields)


def test_the_fingerprint_follows_the_content_and_its_order(tmp_path: Path) -> None:
    rows = some_pairs(31)
    path = write_tsv(tmp_path / "x.tsv", rows)
    prints = [
        Pairs.prepare(small_spec(), path).fingerprint,
        Pairs.prepare(small_spec(), write_tsv(tmp_path / "y.tsv", rows), seed=4).fingerprint,
        Pairs.prepare(small_spec(), write_tsv(tmp_path / "z.tsv", rows[::-1])).fingerprint,
        Pairs.prepare(small_spec(), path, some_pairs(5)).fingerprint,
        Pairs.prepare(small_spec(), rows).fingerprint,
        Pairs.prepare(small_spec(), [("ab", "c"), ("d", "e")]).fingerprint,
        Pairs.prepare(small_spec(), [("a", "bc"), ("d", "e")]).fingerprint,
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 6


def test_pairs_come_as_paths_tuples_or_records(tmp_path: Path) -> None:
    rows = some_pairs(41)
    (tmp_path / "t.en").write_text("".join(f"{a}\n" for a, _ in rows), encoding="utf-8")
    (tmp_path / "t.de").write_text("".join(f"{b}\n" for _, b in rows), encoding="utf-8")
    records = [Record({"source": a, "target": b}, "r", i) for i, (a, b) in enumerate(rows)]
    given = [
        str(tmp_path / "t.{en,de}"),
        [tmp_path / "t.en", tmp_path / "t.de"],
        write_tsv(tmp_path / "t.tsv", rows),
        rows,
        (pair for pair in rows),
        records,
    ]
    prepared = [Pairs.prepare(small_spec(), one, seed=2) for one in given]
    for other in prepared[1:]:
        assert other.validation_texts() == prepared[0].validation_texts()
        assert all(same(a, b) for a, b in zip(other.epoch(0), prepared[0].epoch(0), strict=True))


def test_texts_are_encoded_for_running_in_full() -> None:
    pairs = Pairs.prepare(small_spec(), some_pairs(41))
    tokens = pairs.encode_sources(["one two", "", "one " * 50])
    assert tokens.real.sum(1).tolist() == [3, 1, 51]
    assert tokens.ids[1, 0] == LEARNED_MARKS.end


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_large_corpus_is_mapped_and_taken_up_again(
    dropout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = write_tsv(tmp_path / "x.tsv", some_pairs(301)), tmp_path / "cache"
    bpe = BPE | {"dropout": dropout}
    spec = small_spec(source=bpe, target=bpe, memory_limit=500)
    first = Pairs.prepare(spec, path, seed=1, cache=cache)
    assert first.report.mapped
    in_memory = Pairs.prepare(small_spec(source=bpe, target=bpe), path, seed=1, cache=cache)
    assert not in_memory.report.mapped
    monkeypatch.setattr(
        "regard.data.units._trainer", lambda *_: pytest.fail("vocabularies were learned again")
    )
    second = Pairs.prepare(spec, path, seed=1, cache=cache)
    assert second.report._replace(seconds=0) == first.report._replace(seconds=0)
    for other in (second, in_memory):
        assert other.validation_texts() == first.validation_texts()
        assert other.source_tokenizer.to_json() == first.source_tokenizer.to_json()
        assert all(same(a, b) for a, b in zip(other.epoch(1), first.epoch(1), strict=True))
        assert all(same(a, b) for a, b in zip(other.validation(), first.validation(), strict=True))


def test_a_torn_cache_is_made_anew(tmp_path: Path) -> None:
    path, cache = write_tsv(tmp_path / "x.tsv", some_pairs(301)), tmp_path / "cache"
    spec = small_spec(memory_limit=500)
    first = Pairs.prepare(spec, path, cache=cache)
    files = sorted(file for file in cache.rglob("*") if file.is_file())
    assert [file.name for file in files] == [
        "prepared.json",
        "source.json",
        "source.tokens",
        "target.json",
        "target.tokens",
    ]
    expected = [file.read_bytes() for file in files]
    batches = [batch._replace(rows=batch.rows.copy()) for batch in first.epoch(0)]
    del first
    gc.collect()
    for file in files:
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content[: len(content) // 2])
        again = Pairs.prepare(spec, path, cache=cache)
        assert all(same(a, b) for a, b in zip(again.epoch(0), batches, strict=True))
        found = [other.read_bytes() for other in files]
        assert found[1:] == expected[1:]


def test_other_data_spec_or_seed_never_meets_the_cache_of_another(tmp_path: Path) -> None:
    cache, rows = tmp_path / "cache", some_pairs(301)
    path = write_tsv(tmp_path / "x.tsv", rows)
    spec = small_spec(memory_limit=500)
    Pairs.prepare(spec, path, cache=cache)
    Pairs.prepare(spec, write_tsv(path, rows[1:]), cache=cache)
    Pairs.prepare(spec, path, seed=1, cache=cache)
    Pairs.prepare(small_spec(memory_limit=500, longest=36), path, cache=cache)
    assert len(list(cache.iterdir())) == 4


def test_without_a_cache_folder_nothing_stays_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spec = small_spec(memory_limit=500, source=BPE | {"dropout": 0.2})
    pairs = Pairs.prepare(spec, some_pairs(301))
    assert pairs.report.mapped
    assert len(list(tmp_path.iterdir())) == 1
    epoch = pairs.epoch(0)
    assert len(list(tmp_path.iterdir())) == 1
    texts = {pairs.source_tokenizer.decode(ids) for batch in epoch for ids in batch.source.ids.tolist()}
    assert len(texts) > 100
    del epoch, pairs
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    small = Pairs.prepare(small_spec(), some_pairs(31))
    assert list(tmp_path.iterdir()) == []
    assert not small.report.mapped
