"""The lecture's own example: a character model over h, e, l, o that has read "hello"."""

from pathlib import Path

import pytest

from regard.apps.training import train
from regard.search.greedy import GreedySpec
from tests.apps.toys import toy


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_hello(cell: str, tmp_path: Path) -> None:
    """The second l must be told from the first: only a state that remembers can do it."""
    recurrent = [f"model.decoder.stack.blocks.0.mixers.0.cell={{kind: {cell}, width: 24}}"]
    spec = toy("char_lm", *recurrent, "data.window=6", "data.rows=4")
    run = train(spec, ["hello"] * 8, tmp_path, valid=["hello"], steps=60, seed=1).run
    assert set(run.lexicon["text"].vocabulary()) - {"<pad>", "<unk>", "<s>", "</s>"} == set("helo")
    answers = run.answers(["h", "he", "hel", "hell", ""], GreedySpec(longest_extra=8))
    assert [answer.text for answer in answers] == ["ello", "llo", "lo", "o", "hello"]
    assert all(answer.candidates[0].finished for answer in answers)
    assert run.evaluate([("hello",)]).value < 1.5
