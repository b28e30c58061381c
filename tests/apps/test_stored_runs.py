"""Runs made by earlier versions keep loading and keep answering the same."""

import json
from pathlib import Path

import pytest

from regard.apps.session import load

STORED = sorted((Path(__file__).parent / "stored").iterdir())


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_an_old_run_answers_as_it_did(folder: Path) -> None:
    run = load(folder)
    expected = json.loads((folder / "answers.json").read_text())
    for answer in run.answers(list(expected)):
        assert answer.text == expected[answer.source]["text"]
        assert answer.candidates[0].log_prob == pytest.approx(expected[answer.source]["log_prob"], abs=1e-3)
