"""Several runs asked as one: ensembles, interpolation, and a blank between two directions."""

import math
from pathlib import Path

import pytest
import torch

import regard
from regard.apps.session import load_together
from regard.apps.training import train
from regard.core.errors import RunError, UsageError
from regard.search.greedy import GreedySpec
from regard.search.sampling import SamplingSpec
from tests.apps.conftest import Command
from tests.apps.toys import pairs, texts, toy

GIVEN, VALID, JUDGED = texts(80), texts(10, seed=1), [(text,) for text in texts(6, seed=2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An n-gram, a network, one that reads backwards, and a stranger with a vocabulary of its own."""
    folder = tmp_path_factory.mktemp("together")
    train(toy("ngram", "model.order=3"), GIVEN, folder / "counts", valid=VALID)
    shared = {"valid": VALID, "steps": 60, "vocabulary": folder / "counts"}
    train(toy("char_lm"), GIVEN, folder / "net", **shared)  # type: ignore[arg-type]
    turned = toy("char_lm", "data.backwards=true", "task.backwards=true")
    train(turned, GIVEN, folder / "back", **shared)  # type: ignore[arg-type]
    train(toy("char_lm"), ["xyz xyz zyx"] * 40, folder / "stranger", valid=["xyz"], steps=2)
    return folder


def test_an_interpolation_is_the_weighted_mean_of_probabilities(folder: Path) -> None:
    counts, net = (list(regard.load(folder / name).score(JUDGED)) for name in ("counts", "net"))
    both = list(load_together([folder / "counts", folder / "net"], [3.0, 1.0]).score(JUDGED))
    for a, b, mixed in zip(counts, net, both, strict=True):
        expected = [
            math.log(0.75 * math.exp(x) + 0.25 * math.exp(y))
            for x, y in zip(a.token_log_probs, b.token_log_probs, strict=True)
        ]
        assert mixed.token_log_probs == pytest.approx(expected, abs=1e-4)


def test_a_mixture_writes_as_it_scores(folder: Path) -> None:
    both = load_together([folder / "counts", folder / "net"])
    (answer,) = both.answers(["abc d"], GreedySpec(longest_extra=8))
    (scored,) = both.score([("abc d" + answer.text,)])
    own = scored.token_log_probs[5 : 5 + len(answer.text)]
    assert own == pytest.approx(answer.candidates[0].token_log_probs[: len(own)], abs=1e-4)


def test_an_ensemble_of_a_run_with_itself_is_the_run(tmp_path: Path) -> None:
    run = train(toy("transformer"), pairs(80), tmp_path, valid=pairs(10, seed=1), steps=20).run
    twice = load_together([tmp_path, tmp_path])
    sources = [source for source, _ in pairs(10, seed=2)]
    assert twice(sources) == run(sources)


def test_two_sides_know_more_than_one(folder: Path) -> None:
    between = load_together([folder / "net", folder / "back"])
    one_side = regard.load(folder / "net").evaluate(JUDGED).value
    assert between.evaluate(JUDGED).value < 0.8 * one_side
    (answer,) = between.answers(["ghij d___fdef"])
    assert answer.text == "e"
    assert between.task().shown(answer.source, answer.text) == "ghij defdef"


@torch.no_grad()
def test_a_token_between_others_has_the_probability_of_the_product(folder: Path) -> None:
    between, text = load_together([folder / "net", folder / "back"]), "abc ghij"
    (scored,) = between.score([(text,)])
    for place, letter in enumerate(text):
        (answer,) = between.answers([f"{text[:place]}___{text[place + 1 :]}"], SamplingSpec(best=20))
        found = {candidate.text: candidate.log_prob for candidate in answer.candidates}
        if (
            letter in found
            and text[place - 1 : place] != " "
            and text[place + 1 : place + 2] != " " != letter
        ):
            assert scored.token_log_probs[place] == pytest.approx(found[letter], abs=1e-4)


def test_what_cannot_be_asked_as_one_is_refused(folder: Path, regard: Command) -> None:
    with pytest.raises(RunError, match=r"different vocabularies for 'text'.*--vocabulary"):
        load_together([folder / "net", folder / "stranger"])
    with pytest.raises(UsageError, match="one direction"):
        load_together([folder / "back", folder / "net"])
    with pytest.raises(UsageError, match="as many positive weights"):
        load_together([folder / "net", folder / "counts"], [1.0])
    bad = regard("eval", folder / "net", "--data", "x", "--with", folder / "counts", "--weights", "a,b")
    assert bad.code == 2
    assert "numbers between commas" in bad.err
    no_blank = regard("run", folder / "net", "--with", folder / "back", stdin="no blank here\n")
    assert no_blank.code == 2
    assert "expected one ___" in no_blank.err
    assert "line 1" in no_blank.err


def test_the_command_line_mixes_and_fills(folder: Path, regard: Command, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(one for (one,) in JUDGED))
    alone, mixed = (
        regard("eval", folder / "net", "--data", text, "--json", *more).json[0]["value"]
        for more in ((), ("--with", folder / "counts", "--weights", "0.3,0.7"))
    )
    assert mixed != alone
    assert (
        regard("run", folder / "net", "--with", folder / "back", stdin="ghij d___fdef\n").out
        == "ghij defdef\n"
    )
