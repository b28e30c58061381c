"""Data sets by name, through the library where it is there and through a stand-in for it everywhere."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regard.core.errors import DataError, UsageError
from regard.data.documents import documents_of
from regard.data.hub import HubName, hub_splits
from regard.data.origins import origin_of
from regard.data.pairs import PairsSpec
from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec


class Rows(list[dict[str, Any]]):
    _fingerprint = "made up"


SPLITS = {
    "train": Rows([{"text": f"number {n}", "x": "?"} for n in range(30)]),
    "validation": Rows([{"text": "one"}]),
    "test": Rows([{"text": "two\nlines"}, {"text": "three"}]),
}
PAIRS = {"train": Rows([{"translation": {"en": "a dog", "de": "ein hund"}}, {"source": "a", "target": "b"}])}


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for ``datasets``: two data sets, and its ways of complaining."""

    def load_dataset(name: str, config: str | None, split: str) -> Rows:
        if name not in ("small/texts", "small/pairs"):
            raise FileNotFoundError(f"Dataset '{name}' doesn't exist\nand more")
        found = SPLITS if name == "small/texts" else PAIRS
        if split not in found:
            raise ValueError(f'Unknown split "{split}".')
        return found[split]

    def names(name: str, config: str | None) -> list[str]:
        return list(SPLITS if name == "small/texts" else PAIRS)

    module = ModuleType("datasets")
    module.__dict__.update(SimpleNamespace(load_dataset=load_dataset, get_dataset_split_names=names).__dict__)
    monkeypatch.setitem(sys.modules, "datasets", module)


@pytest.mark.usefixtures("library")
def test_splits_are_found_under_their_names() -> None:
    found = hub_splits("hf:small/texts")
    assert found == {
        "train": "hf:small/texts::train",
        "valid": "hf:small/texts::validation",
        "test": "hf:small/texts::test",
    }
    assert HubName.read("hf:small/texts::test") == HubName("small/texts", None, "test")
    spec = TextSpec(tokenizer=TokenizerSpec(unit="character", size=100))
    train, valid = spec.find("hf:small/texts", None)
    prepared = spec.prepare(train, valid, 1, None, None)
    assert (prepared.report.documents, prepared.report.validation) == (30, 4)
    assert spec.records("hf:small/texts") == [("two\nlines",), ("three",)]


@pytest.mark.usefixtures("library")
def test_pairs_and_translations_are_read() -> None:
    records = [record.fields for record in origin_of("hf:small/pairs")]
    assert records == [{"source": "a dog", "target": "ein hund"}, {"source": "a", "target": "b"}]
    assert PairsSpec().records("hf:small/pairs") == [("a dog", "ein hund"), ("a", "b")]
    assert origin_of("hf:small/pairs").fingerprint() == origin_of("hf:small/pairs").fingerprint()


@pytest.mark.usefixtures("library")
def test_what_is_not_there_is_said() -> None:
    with pytest.raises(DataError, match=r"no split 'trian'.*train"):
        documents_of("hf:small/texts::trian", "file")
    with pytest.raises(DataError, match=r"doesn't exist$"):
        documents_of("hf:nobody/nothing", "file")
    with pytest.raises(DataError, match="there is no 'text'"):
        list(documents_of("hf:small/pairs", "file"))
    with pytest.raises(UsageError, match="names no data set"):
        hub_splits("hf:")


def test_without_the_library_one_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r'pip install "regard\[hub\]"'):
        documents_of("hf:some/name", "file")


def test_a_folder_is_read_by_the_real_library(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the extra hub is not installed")
    lines = [json.dumps({"text": f"text {n}"}) for n in range(5)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    assert [passage.text for passage in documents_of(f"hf:{tmp_path}", "file")] == [
        f"text {n}" for n in range(5)
    ]
