"""Both engines find the same: random Transformers of every form, answered by CTranslate2 and by our steps."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.apps.session import Run, load
from regard.core.errors import UsageError
from regard.engines.budgets import Budgets
from regard.engines.company import Company
from regard.engines.ctranslate2 import Searching
from regard.engines.layout import Layout, Layouts
from regard.engines.notes import Notes
from regard.parts.positions import (
    NoPositionSpec,
    RotarySpec,
    SinusoidalSpec,
)
from regard.search.beam import BeamSpec
from regard.search.greedy import GreedySpec
from regard.search.search import SearchSpec
from regard.search.stopping import EnoughFinishedSpec, NoBetterPossibleSpec
from regard.tasks.answers import Answer
from regard.tasks.task import Asked, Wishes
from regard.training.run_folder import RunFolder
from tests.apps.conftest import Command
from tests.engines.small import LINES, SYSTEMS, run_of, system

SEARCHES: dict[str, SearchSpec] = {
    "greedy": GreedySpec(),
    "beam": BeamSpec(size=4, best=2),
    "beam without normalisation": BeamSpec(size=3, best=3, alpha=0.0),
    "patient beam": BeamSpec(size=3, best=3, alpha=0.6, stop=EnoughFinishedSpec(finished=6)),
}


@pytest.fixture(scope="module", params=SYSTEMS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(SYSTEMS[request.param](), tmp_path_factory.mktemp("engines") / "run")


@pytest.fixture(scope="module")
def rotary(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(SYSTEMS["rotary"](), tmp_path_factory.mktemp("engines") / "run")


@pytest.fixture
def own(rotary: Run, tmp_path: Path) -> Run:
    """A run that a test may change."""
    shutil.copytree(rotary.path, tmp_path / "run", ignore=shutil.ignore_patterns("ctranslate2"))
    return load(tmp_path / "run")


def both(run: Run, search: SearchSpec) -> tuple[list[Answer], list[Answer]]:
    steps = load(run.path, engine="torch")
    return run.answers(LINES, search), steps.answers(LINES, search)


@pytest.mark.parametrize("name", SEARCHES)
def test_both_engines_find_the_same(run: Run, name: str) -> None:
    fast, stepped = both(run, SEARCHES[name])
    assert sum(answer.engine == "ctranslate2" for answer in fast) > 5
    assert len({candidate.text for answer in stepped for candidate in answer.candidates}) > 2
    for one, other in zip(fast, stepped, strict=True):
        assert one.source_pieces == other.source_pieces
        assert [found.pieces for found in one.candidates] == [found.pieces for found in other.candidates]
        for found, expected in zip(one.candidates, other.candidates, strict=True):
            assert found.token_log_probs == pytest.approx(expected.token_log_probs, abs=2e-4)
            assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-3)
            assert found.score == pytest.approx(expected.score, abs=1e-4)
            assert found.finished == expected.finished


def test_who_loads_an_engine_keeps_the_threads(rotary: Run) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        load(rotary.path, engine="ctranslate2").answers(LINES)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_a_line_alone_is_answered_as_among_others(rotary: Run) -> None:
    together = [answer.text for answer in rotary.answers(LINES)]
    assert [rotary(line) for line in LINES] == together
    assert rotary(["", *LINES[:3], " "]) == ["", *together[:3], ""]


@pytest.mark.parametrize("ratio", [0.0, 0.4])
@pytest.mark.parametrize("best", [1, 2])
def test_of_a_beam_that_reaches_its_greatest_length_who_ended_is_taken(
    run: Run, ratio: float, best: int
) -> None:
    """With a ratio some go on for the sake of their neighbours. Where too few of those that are told ended,
    our own steps search."""
    fast, stepped = both(run, BeamSpec(size=4, best=best, longest_ratio=ratio, longest_extra=3))
    for one, other in zip(fast, stepped, strict=True):
        assert [found.pieces for found in one.candidates] == [found.pieces for found in other.candidates]
        assert [found.finished for found in one.candidates] == [found.finished for found in other.candidates]
        for found, expected in zip(one.candidates, other.candidates, strict=True):
            assert found.score == pytest.approx(expected.score, abs=1e-4)
        if one.engine == "ctranslate2":
            assert len(one.candidates) == best
            assert all(found.finished for found in one.candidates)


def test_who_is_cut_off_beside_one_who_ended_needs_no_other_engine(run: Run) -> None:
    engine, partly = run.engine.searching, 0
    assert isinstance(engine, Searching)
    given = [run.lexicon["source"].encode(line) for line in LINES]
    for limit in (3, 5, 8):
        limits, search = [limit] * len(given), BeamSpec(size=4)
        told = engine._tell(search, "text")
        under_way = engine._ask(engine._loaded.at(engine.layouts.bulk[0]), given, limits, told)
        answered = dict(engine.search(given, limits, search, "text"))
        for batch, futures in under_way.batches:
            for row, future in zip(batch.rows, futures, strict=True):
                ended = [names[-1] == engine.model.end for names in engine.model.found(future.result())]
                assert (answered[row] is not None) == any(ended)
                partly += any(ended) and not all(ended)
    assert partly > 5


@pytest.mark.parametrize("ratio", [0.0, 0.4])
def test_a_greedy_answer_is_cut_where_our_steps_cut_it(rotary: Run, ratio: float) -> None:
    """With a ratio some go on for the sake of their neighbours."""
    fast, stepped = both(rotary, GreedySpec(longest_ratio=ratio, longest_extra=2))
    assert {answer.engine for answer in fast} == {"ctranslate2"}
    assert {answer.candidates[0].finished for answer in stepped} == {True, False}
    brief = list(rotary.stream(LINES, GreedySpec(longest_ratio=ratio, longest_extra=2), detail="scores"))
    for one, other, short in zip(fast, stepped, brief, strict=True):
        (found,), (expected,), (cut,) = one.candidates, other.candidates, short.candidates
        assert found.pieces == cut.pieces == expected.pieces
        assert found.finished == cut.finished == expected.finished
        assert found.token_log_probs == pytest.approx(expected.token_log_probs, abs=2e-4)
        for candidate in (found, cut):
            assert candidate.score == pytest.approx(expected.score, abs=1e-4)
            assert candidate.log_prob == pytest.approx(expected.log_prob, abs=1e-3)


@pytest.mark.parametrize("search", [GreedySpec(), BeamSpec(size=3)], ids=["greedy", "beam"])
def test_who_wants_only_texts_gets_the_same_ones(rotary: Run, search: SearchSpec) -> None:
    full = rotary.answers(LINES, search)
    brief = list(rotary.stream(LINES, search, detail="text"))
    assert [answer.text for answer in brief] == [answer.text for answer in full]
    assert [answer.engine for answer in brief] == [answer.engine for answer in full]
    for answer in brief:
        assert not answer.source_pieces
        assert not any(candidate.pieces for candidate in answer.candidates)


def test_answers_come_as_they_are_found(rotary: Run) -> None:
    """All of them once, the longest sources first; rows that it has no room for at the end."""
    engine, rows = rotary.engine.engine, [[5] * length for length in (3, 40, 9, 5000)]
    assert engine is not None
    found = list(engine.search(rows, [4] * 4, GreedySpec(), "scores"))
    assert sorted(row for row, _ in found) == [0, 1, 2, 3]
    assert found[-1] == (3, None)
    assert all(hypotheses for _, hypotheses in found[:-1])


@pytest.mark.parametrize(("share", "workers"), [(1.0, 4), (0.5, 2), (0.01, 1)])
def test_texts_have_their_share_of_the_workers(
    rotary: Run, share: float, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, told = rotary.engine.searching, list[int]()
    assert isinstance(engine, Searching)
    batches = engine.model.batches
    monkeypatch.setattr(engine.layouts, "chosen", lambda beam, bulk: Layout("float32", 4, 1))
    monkeypatch.setattr(engine.model, "batches", lambda *asked: told.append(asked[4]) or batches(*asked))
    assert [answer.text for answer in rotary.task().answer(Asked(LINES, share=share))] == rotary(LINES)
    assert told[0] == workers


@pytest.mark.parametrize(("lines", "share", "bulk"), [(1, 1.0, False), (2, 1.0, True), (1, 0.5, True)])
def test_a_line_alone_has_a_worker_of_its_own_and_one_among_others_has_not(
    rotary: Run, lines: int, share: float, bulk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, told = rotary.engine.searching, list[Layout]()
    assert isinstance(engine, Searching)
    at = engine._loaded.at
    monkeypatch.setattr(engine, "layouts", Layouts("float32", Notes(None), cores=2))
    monkeypatch.setattr(engine, "_alone", [])
    monkeypatch.setattr(engine._loaded, "at", lambda layout: told.append(layout) or at(layout))
    rotary.task().answer(Asked(LINES[:lines], share=share))
    assert told == [engine.layouts.chosen(rotary.spec.search.size, bulk=bulk)]


def test_answers_do_not_depend_on_what_is_tried_meanwhile(
    rotary: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, told = rotary.engine.searching, list[int]()
    assert isinstance(engine, Searching)
    usual, batches = rotary(LINES), engine.model.batches
    monkeypatch.setattr("regard.engines.budgets.MANY", len(LINES))
    monkeypatch.setattr(engine, "budgets", Budgets((40, 2048, 100), Notes(None), "here"))
    monkeypatch.setattr(engine.model, "batches", lambda *asked: told.append(asked[-1]) or batches(*asked))
    rotary.task().answer(Asked(LINES, share=0.5))  # what others compute beside it tells nothing
    assert all(rotary(LINES) == usual for _ in range(8))
    assert told[0] == 40
    assert sorted(told[1:7]) == sorted((40, 2048, 100) * 2)
    assert told[7] == told[8] == engine.budgets.of(rotary.spec.search.size, 1)


def test_of_many_rows_that_it_has_no_room_for_nothing_is_learned(
    rotary: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = rotary.engine.searching
    assert isinstance(engine, Searching)
    monkeypatch.setattr("regard.engines.budgets.MANY", 2)
    monkeypatch.setattr(engine, "budgets", Budgets((2048, 40), Notes(None), "here"))
    for _ in range(4):
        assert list(engine.search([[5] * 5000] * 3, [4] * 3, BeamSpec(), "text")) == [
            (n, None) for n in range(3)
        ]
    assert not engine.budgets.known(5)


def test_what_it_cannot_do_is_done_by_our_steps_and_said(rotary: Run) -> None:
    assert rotary.answered_by().startswith("ctranslate2, float32")
    assert rotary.answered_by(keep=True) == "torch (it cannot show its search)"
    assert "wishes" in rotary.answered_by(wishes=Wishes(prefix="a"))
    assert "'sampling'" in rotary.answered_by(rotary.spec.override(["search.kind=sampling"]).search)
    assert "no_better_possible" in rotary.answered_by(BeamSpec(stop=NoBetterPossibleSpec()))
    assert "at least 2" in rotary.answered_by(BeamSpec(shortest=2))
    repeating = rotary.spec.override(["search.constraints=[{kind: no_repeat, length: 2}]"]).search
    assert "'no_repeat'" in rotary.answered_by(repeating)
    (kept,) = rotary.answers(LINES[:1], keep=True)
    assert kept.search is not None
    assert kept.engine == "torch"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.encoder.stack.blocks.0.mixers.0.positions.kind=distance"], "'distance'"),
        (["model.decoder.stack.blocks.0.mixers.0.radius=3"], "radius is 3"),
        (
            ["model.encoder.stack.blocks.0.join.kind=halved", "model.encoder.stack.final_norm=null"],
            "'halved'",
        ),
        (["model.encoder.sees=earlier"], "sees is 'earlier'"),
        (["model.decoder.stack.blocks.0.mixers.1.heads=4"], "other heads"),
        (["model.decoder.stack.blocks.0.join.norm.epsilon=0.1"], "not like the norms"),
        (
            ["model.encoder.stack.blocks.0.mixers.0={kind: recurrent, cell: {kind: gru, width: 16}}"],
            "recurrent",
        ),
    ],
)
def test_what_it_has_no_word_for_is_refused_by_its_name(
    settings: list[str], said: str, tmp_path: Path
) -> None:
    spec = system(NoPositionSpec(), RotarySpec(), *settings)
    run = run_of(spec, tmp_path / "run", ending=False)
    assert said in run.answered_by()
    assert run.answered_by().startswith("torch (")
    assert run.answers(LINES[:2])[0].engine == "torch"
    with pytest.raises(UsageError, match="cannot answer for this run"):
        load(run.path, engine="ctranslate2").answers(LINES[:1])


def test_positions_in_the_input_and_in_attention_at_once_are_refused(tmp_path: Path) -> None:
    run = run_of(system(SinusoidalSpec(), RotarySpec()), tmp_path / "run", ending=False)
    assert "not both" in run.answered_by()


def test_new_weights_are_converted_anew_and_old_copies_removed(own: Run) -> None:
    before = own(LINES)
    folder = RunFolder.open(own.path)
    folder.save_weights({name: tensor * 1.1 for name, tensor in folder.read_weights().items()})
    after = load(own.path)
    assert after(LINES) == load(own.path, engine="torch")(LINES) != before
    assert len([item for item in (own.path / "ctranslate2").iterdir() if item.is_dir()]) == 1


def test_a_run_that_nobody_may_write_to_is_answered_all_the_same(own: Run) -> None:
    (own.path / "ctranslate2").write_text("in the way")
    assert "ctranslate2" in {answer.engine for answer in own.answers(LINES)}


def test_int8_is_chosen_when_asked_for_and_auto_is_measured_once(own: Run) -> None:
    coarse = load(own.path, precision="int8")
    assert coarse.answered_by().startswith("ctranslate2, int8")
    assert sum(a == b for a, b in zip(coarse(LINES), own(LINES), strict=True)) > len(LINES) / 2
    measured = load(own.path, precision="auto")
    many = LINES * 2
    first = measured(many)
    notes = json.loads((own.path / "ctranslate2" / "layouts.json").read_text())
    ((key, ((precision, *_), _)),) = notes.items()
    assert key.endswith(f"auto, layouts for beams of {own.spec.search.size}")
    again = load(own.path, precision="auto")
    assert again.answered_by().startswith(f"ctranslate2, {precision}")
    assert again(many) == first == load(own.path, precision=precision)(many)


def test_who_asks_line_by_line_finds_out_the_best_layout_too(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, measured = own.engine.searching, list[int]()
    assert isinstance(engine, Searching)
    measure = engine._measure
    monkeypatch.setattr(engine, "layouts", Layouts("auto", Notes(None), cores=1))
    monkeypatch.setattr("regard.engines.ctranslate2._BULK", 8)
    monkeypatch.setattr(engine, "_measure", lambda *asked: measured.append(len(asked[0])) or measure(*asked))
    for line in LINES[:7]:
        own(line)
    own(LINES[:7])  # so few at once tell nothing
    assert not measured
    for line in LINES[:9]:
        own(line)
    assert measured == [8]
    assert engine.layouts.known(own.spec.search.size)
    assert not engine.layouts.known(beam=1)


def test_lines_of_another_search_tell_nothing(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, measured = own.engine.searching, list[tuple[int, int]]()
    assert isinstance(engine, Searching)
    monkeypatch.setattr(engine, "layouts", Layouts("auto", Notes(None), cores=1))
    monkeypatch.setattr("regard.engines.ctranslate2._BULK", 4)
    monkeypatch.setattr(engine, "_measure", lambda given, _, told: measured.append((len(given), told.beam)))
    for size in (1, 3, 1, 3, 3, 3):  # greedily, and with beams of three
        own.answers([LINES[0]], GreedySpec() if size == 1 else BeamSpec(size=size))
    assert not measured
    own.answers([LINES[0]], BeamSpec(size=3))
    assert measured == [(4, 3)]


def test_a_line_alone_goes_to_whoever_is_faster_meanwhile(
    rotary: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several threads are chosen; the company they are in says now and then that one thread be tried."""
    engine, told, heard = rotary.engine.searching, list[int](), list[tuple[int, int]]()
    assert isinstance(engine, Searching)
    at = engine._loaded.at
    monkeypatch.setattr(engine, "layouts", Layouts("float32", Notes(None), cores=2, large=True))
    monkeypatch.setattr(engine, "_alone", [])
    monkeypatch.setattr(engine, "_company", Company())
    took = lambda layout, tokens, seconds: heard.append((layout.threads, tokens))  # noqa: E731
    monkeypatch.setattr(engine._company, "took", took)
    monkeypatch.setattr(engine._loaded, "at", lambda layout: told.append(layout.threads) or at(layout))
    answers = [rotary(line) for line in LINES[:9]]
    assert answers == rotary(LINES)[:9]
    assert told[:9] == [2] * 7 + [1, 2]
    assert [threads for threads, _ in heard] == told[:9]
    assert [tokens for _, tokens in heard] == [
        len(rotary.lexicon["source"].encode(line)) + 1 for line in LINES[:9]
    ]


def test_one_line_of_a_large_model_has_all_threads_until_it_is_measured(tmp_path: Path) -> None:
    notes, one, both = Notes(tmp_path / "layouts.json"), Layout("float32", 1, 1), Layout("float32", 1, 2)
    small, large = (Layouts("float32", notes, cores=2, large=large) for large in (False, True))
    assert small.chosen(1, bulk=True) == large.chosen(1, bulk=True) == Layout("float32", 2, 1)
    assert (small.chosen(1, bulk=False), large.chosen(1, bulk=False)) == (one, both)
    large.measure(1, lambda _: None, lambda layout: time.sleep({one: 0.0, both: 0.02}[layout]))
    assert large.chosen(1, bulk=False) == one
    small.measure(1, lambda _: None, lambda layout: time.sleep({one: 0.02, both: 0.0}[layout]))
    assert small.chosen(1, bulk=False) == both


def test_every_size_of_beams_has_its_own_layouts(tmp_path: Path) -> None:
    notes, one, both = Notes(tmp_path / "layouts.json"), Layout("float32", 1, 1), Layout("float32", 1, 2)
    layouts = Layouts("float32", notes, cores=2)
    layouts.measure(5, lambda _: None, lambda layout: time.sleep({one: 0.02, both: 0.0}[layout]))
    for known in (layouts, Layouts("float32", notes, cores=2)):
        assert not known.known(1)
        assert known.known(5)
        assert (known.chosen(1, bulk=False), known.chosen(5, bulk=False)) == (one, both)
        assert known.in_use() == {Layout("float32", 2, 1), one, both}


def test_a_little_faster_is_no_reason_to_give_up_digits_or_to_take_more_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts, clock = Layouts("auto", Notes(tmp_path / "layouts.json"), cores=2), [0.0]
    monkeypatch.setattr("regard.engines.layout.time.perf_counter", lambda: clock[0])

    def taking(seconds: dict[str, float], more: float) -> Callable[[Layout], None]:
        def use(layout: Layout) -> None:
            clock[0] += seconds[layout.precision] * (more if layout.threads == 2 else 1.0)

        return use

    def chosen(bulk: dict[str, float], alone: dict[str, float], more: float) -> list[Layout]:
        layouts.measure(1, taking(bulk, 1.0), taking(alone, more))
        return [layouts.chosen(1, bulk=True), layouts.chosen(1, bulk=False)]

    found = chosen({"float32": 1.03, "int8": 1.0}, {"float32": 1.2, "int8": 1.0}, more=0.97)
    assert found == [Layout("float32", 2, 1), Layout("int8", 1, 1)]
    found = chosen({"float32": 1.2, "int8": 1.0}, {"float32": 1.0, "int8": 1.0}, more=0.9)
    assert found == [Layout("int8", 2, 1), Layout("float32", 1, 2)]


def test_the_command_says_who_answers(regard: Command, rotary: Run) -> None:
    spoken = regard("run", rotary.path, stdin="\n".join(LINES[:3]))
    assert spoken.err == f"engine: {rotary.answered_by()}\n"
    printed = regard("run", rotary.path, "--json", "--engine", "ctranslate2", stdin=LINES[0]).json[0]
    assert printed["engine"] == "ctranslate2"
    assert printed["token_log_probs"]
    own = regard("run", rotary.path, "--json", "--engine", "torch", stdin=LINES[0]).json[0]
    assert own["engine"] == "torch"
    assert own["text"] == printed["text"]
    refused = regard("run", rotary.path, "--engine", "ctranslate2", "--sample", stdin=LINES[0])
    assert refused.code == 2
    assert "sampling" in refused.err
    wrong = regard("run", rotary.path, "--engine", "ctranslate", stdin=LINES[0])
    assert wrong.code == 2
    assert "did you mean 'ctranslate2'" in wrong.err
