"""Answers from a shortlist: the same where everything is on it, and nothing else where it is not."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from regard.apps.session import Run, load
from regard.core.errors import RunError, UsageError
from regard.data.shortlists import Shortlist
from regard.search.beam import BeamSpec
from regard.search.greedy import GreedySpec
from regard.search.search import SearchSpec
from regard.training.run_folder import SHORTLIST, RunFolder
from tests.apps.conftest import Command
from tests.apps.toys import pairs
from tests.engines.small import LINES, SYSTEMS, run_of
from tests.engines.small_writers import writer, writer_of

SEARCHES: dict[str, SearchSpec] = {"greedy": GreedySpec(), "beam": BeamSpec(size=3, best=2)}


@pytest.fixture(scope="module", params=["rotary", "two vocabularies"])
def plain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(SYSTEMS[request.param](), tmp_path_factory.mktemp("engines") / "run")


@pytest.fixture
def run(plain: Run, tmp_path: Path) -> Run:
    """One that a test may change."""
    shutil.copytree(plain.path, tmp_path / "run", ignore=shutil.ignore_patterns("ctranslate2"))
    return load(tmp_path / "run")


def with_list(run: Run, common: list[int], beside: list[list[int]]) -> Run:
    begins = np.cumsum([0, *map(len, beside)])
    made = Shortlist(np.array(common), begins, np.array([token for some in beside for token in some]))
    RunFolder.open(run.path).save_shortlist(made.tensors())
    return load(run.path, shortlist=True)


@pytest.mark.parametrize("name", SEARCHES)
def test_where_everything_is_on_it_answers_are_the_same(run: Run, name: str) -> None:
    written = run.lexicon["target"].size
    listed = with_list(run, list(range(written)), [[0]] * run.lexicon["source"].size)
    assert listed.answered_by().endswith(", shortlist")
    fast, own = listed.answers(LINES, SEARCHES[name]), run.answers(LINES, SEARCHES[name])
    assert "ctranslate2" in {answer.engine for answer in fast}
    for one, other in zip(fast, own, strict=True):
        assert [found.tokens for found in one.candidates] == [found.tokens for found in other.candidates]
        assert one.candidates[0].score == pytest.approx(other.candidates[0].score, abs=1e-4)


def test_nothing_is_written_that_is_not_on_it(run: Run) -> None:
    source, target = run.lexicon["source"], run.lexicon["target"]
    likely = sorted({token for answer in run.answers(LINES) for token in answer.candidates[0].tokens})
    beside = [[one for one in likely if (7 * one + token) % 11 == 0] for token in range(source.size)]
    listed = with_list(run, [4], beside)
    always = {4, target.unknown, target.begin, target.end}
    answers = [listed.answers([line], GreedySpec())[0] for line in LINES]
    assert {answer.engine for answer in answers} == {"ctranslate2"}
    used = set[int]()
    for line, answer in zip(LINES, answers, strict=True):
        allowed = always.union(*(beside[token] for token in [*source.encode(line), source.end]))
        assert set(answer.candidates[0].tokens) <= allowed
        used |= set(answer.candidates[0].tokens)
    assert used - always
    assert [answer.text for answer in answers] != [run(line) for line in LINES]


def test_probabilities_are_among_all_words(run: Run) -> None:
    listed = with_list(run, list(range(4, 30)), [[4]] * run.lexicon["source"].size)
    for answer in listed.answers(LINES[:6], GreedySpec()):
        (found,) = answer.candidates
        (scored,) = run.score([(answer.source, found.text)])
        if run.lexicon["target"].encode(found.text) == found.tokens and found.finished:
            assert found.log_prob == pytest.approx(scored.log_prob, abs=1e-3)
        assert found.log_prob == pytest.approx(sum(found.token_log_probs))
        alpha = GreedySpec().alpha
        assert found.score == pytest.approx(found.log_prob / len(found.token_log_probs) ** alpha)


def test_copies_with_and_without_stay_and_old_ones_go(run: Run) -> None:
    def copies() -> set[str]:
        return {item.name for item in (run.path / "ctranslate2").iterdir() if item.is_dir()}

    run(LINES)
    (plain,) = copies()
    size = run.lexicon["source"].size
    first = with_list(run, [4, 5], [[6]] * size)(LINES)
    (one,) = copies() - {plain}
    second = with_list(run, list(range(4, 30)), [[6]] * size)(LINES)
    assert first != second
    assert len(copies()) == 2
    assert copies() > {plain}
    assert one not in copies()
    load(run.path)(LINES)
    assert len(copies()) == 2


def test_who_has_none_is_told_how_to_make_one(run: Run) -> None:
    with pytest.raises(UsageError, match=r"regard shortlist .* --data"):
        load(run.path, shortlist=True)


def test_a_damaged_one_and_one_of_another_run_are_refused(run: Run) -> None:
    with_list(run, [4], [[5]] * run.lexicon["source"].size)
    with pytest.raises(RunError, match=f"{SHORTLIST}: made for other vocabularies"):
        with_list(run, [4], [[5]])
    path = run.path / SHORTLIST
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(RunError, match=f"{SHORTLIST}: damaged"):
        load(run.path, shortlist=True)
    assert load(run.path)(LINES) == run(LINES)


def test_only_ctranslate2_answers_from_one_and_only_translators_have_one(run: Run, tmp_path: Path) -> None:
    with_list(run, [4], [[5]] * run.lexicon["source"].size)
    with pytest.raises(UsageError, match="not with --engine torch"):
        load(run.path, engine="torch", shortlist=True).answered_by()
    continuing = writer_of(writer(), tmp_path / "writer", ending=False)
    with pytest.raises(UsageError, match="read one text and write another"):
        load(continuing.path, shortlist=True)


def test_training_leaves_one_and_the_command_makes_the_same(regard: Command, tmp_path: Path) -> None:
    data, out = tmp_path / "pairs.tsv", tmp_path / "run"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in pairs(80)), encoding="utf-8")
    trained = regard("train", "transformer_tiny", "--data", data, "--out", out, "--steps", 2, "--quiet")
    assert trained.code == 0
    learned = (out / SHORTLIST).read_bytes()
    (out / SHORTLIST).unlink()
    lines = "\n".join(LINES[:3])
    refused = regard("run", out, "--shortlist", stdin=lines)
    assert refused.code == 2
    assert "regard shortlist" in refused.err
    assert regard("shortlist", out, "--data", data).code == 0
    assert (out / SHORTLIST).read_bytes() == learned
    assert "shortlist" in regard("run", out, "--shortlist", stdin=lines).err
    mixed = regard("run", out, "--shortlist", "--with", out, stdin=lines)
    assert mixed.code == 2
    assert "not with --with" in mixed.err
