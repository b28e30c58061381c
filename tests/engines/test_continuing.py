"""Both engines go on with prompts alike: random language models, answered by CTranslate2 and by our steps."""

import itertools
from pathlib import Path

import pytest

from regard.apps.session import Run, load
from regard.core.errors import UsageError
from regard.engines.served import Generators
from regard.search.beam import BeamSpec
from regard.search.greedy import GreedySpec
from regard.search.search import SearchSpec
from regard.tasks.answers import Answer, Candidate
from regard.tasks.task import Asked, Wishes
from tests.apps.conftest import Command
from tests.engines.small_writers import LONG, POSITIONS, PROMPTS, WRITERS, writer, writer_of

GREEDY = GreedySpec(longest_ratio=0.0, longest_extra=12)
SEARCHES: dict[str, SearchSpec] = {
    "greedy": GREEDY,
    "greedy beyond the positions": GreedySpec(longest_ratio=0.0, longest_extra=3 * POSITIONS, alpha=0.6),
    "beam": BeamSpec(size=3, best=2, longest_ratio=0.0, longest_extra=12),
}


@pytest.fixture(scope="module", params=WRITERS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return writer_of(WRITERS[request.param](), tmp_path_factory.mktemp("writers") / "run")


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return writer_of(writer(), tmp_path_factory.mktemp("writers") / "run")


def both(run: Run, search: SearchSpec, prompts: list[str]) -> tuple[list[Answer], list[Answer]]:
    steps = load(run.path, engine="torch")
    return run.answers(prompts, search, truncate=True), steps.answers(prompts, search, truncate=True)


def same(found: Candidate, expected: Candidate) -> None:
    assert found.tokens == expected.tokens
    assert found.pieces == expected.pieces
    assert found.finished == expected.finished
    assert found.log_prob == pytest.approx(expected.log_prob, abs=2e-3)
    assert found.score == pytest.approx(expected.score, abs=2e-4)


@pytest.mark.parametrize("name", SEARCHES)
def test_both_engines_go_on_alike(run: Run, name: str) -> None:
    fast, stepped = both(run, SEARCHES[name], PROMPTS)
    by_engine = [answer.engine == "ctranslate2" for answer in fast]
    assert all(by_engine) if SEARCHES[name].steady else sum(by_engine) > 2
    assert len({candidate.text for answer in stepped for candidate in answer.candidates}) > 4
    for one, other in zip(fast, stepped, strict=True):
        assert one.source_pieces == other.source_pieces
        for found, expected in itertools.zip_longest(one.candidates, other.candidates):
            same(found, expected)
            assert found.token_log_probs == pytest.approx(expected.token_log_probs, abs=3e-4)


def test_some_texts_end_and_some_are_cut(gpt: Run) -> None:
    """Otherwise the test above would be blind for one of them."""
    for search in (SEARCHES["greedy"], SEARCHES["greedy beyond the positions"]):
        assert {answer.candidates[0].finished for answer in gpt.answers(PROMPTS, search, truncate=True)} == {
            True,
            False,
        }


def test_prompts_that_fill_all_positions_go_on(gpt: Run) -> None:
    """One token of room, then from the newer half."""
    prompts = [LONG * 3, (LONG * 3)[5:], LONG[:30]]
    fast, stepped = both(gpt, SEARCHES["greedy beyond the positions"], prompts)
    assert [len(answer.source_pieces) for answer in fast[:2]] == [POSITIONS - 1] * 2
    assert {answer.engine for answer in fast} == {"ctranslate2"}
    for one, other in zip(fast, stepped, strict=True):
        same(one.candidates[0], other.candidates[0])


@pytest.mark.parametrize("name", ["greedy", "greedy beyond the positions"])
def test_a_prompt_alone_goes_on_as_among_others(gpt: Run, name: str) -> None:
    together = gpt.answers(PROMPTS, SEARCHES[name], truncate=True)
    for prompt, expected in zip(PROMPTS, together, strict=True):
        (alone,) = gpt.answers([prompt], SEARCHES[name], truncate=True)
        same(alone.candidates[0], expected.candidates[0])


def test_scores_are_there_without_detail(gpt: Run) -> None:
    _, stepped = both(gpt, GREEDY, PROMPTS)
    brief = gpt.stream(PROMPTS, GREEDY, truncate=True, detail="scores")
    for one, other in zip(brief, stepped, strict=True):
        same(one.candidates[0], other.candidates[0])


def test_prompts_of_like_length_go_together_and_each_once(gpt: Run) -> None:
    tokenizer = gpt.lexicon["text"]
    served = Generators(tokenizer, tokenizer, positions=60)
    given = [[1] * length for length in (3, 9, 4, 3, 1, 30, 31, 55, 3)]
    longest = [12, 12, 12, 12, 12, 12, 12, 12, 7]
    greedy = list(served.batches(given, longest, steady=True, beam=1, workers=1, budget=1))
    assert [batch.rows for batch in greedy] == [[8], [4], [0, 3, 2], [1], [5, 6]]  # one has no room
    assert [batch.limit for batch in greedy] == [7, 12, 12, 12, 12]
    beams = [
        batch.rows for batch in served.batches(given, longest, steady=False, beam=4, workers=1, budget=1)
    ]
    assert beams == [[8], [4], [0, 3], [2], [1], [5], [6]]
    divided = list(served.batches([[1] * 3] * 10, [12] * 10, steady=True, beam=1, workers=2, budget=1))
    assert [len(batch.rows) for batch in divided] == [5, 5]


def test_what_it_cannot_do_is_done_by_our_steps_and_said(gpt: Run) -> None:
    assert gpt.answered_by(GREEDY).startswith("ctranslate2, float32")
    assert "'sampling'" in gpt.answered_by()
    assert gpt.answered_by(GREEDY, keep=True) == "torch (it cannot show its search)"
    for wishes in (Wishes(prefix="a"), Wishes(stop=("a",)), Wishes(forbid=("a",))):
        assert "wishes" in gpt.answered_by(GREEDY, wishes)
        (answer,) = gpt.answers(["b"], GREEDY, wishes)
        assert answer.engine == "torch"
    repeating = gpt.spec.override(["search.constraints=[{kind: no_repeat, length: 2}]"]).search
    assert "'no_repeat'" in gpt.answered_by(repeating)
    assert "at least 3" in gpt.answered_by(GREEDY.model_copy(update={"shortest": 3}))
    assert gpt.evaluated_by(GREEDY) == "torch (a text is judged by our own steps)"
    with pytest.raises(UsageError, match="sampling"):
        load(gpt.path, engine="ctranslate2").answered_by()


def test_a_beam_that_reaches_its_greatest_length_is_searched_by_our_steps(gpt: Run) -> None:
    fast, stepped = both(gpt, BeamSpec(size=2, longest_ratio=0.0, longest_extra=2), PROMPTS)
    assert "torch" in {answer.engine for answer in fast}
    assert [answer.text for answer in fast] == [answer.text for answer in stepped]


class Listener:
    listens = True

    def __init__(self) -> None:
        self.heard = ""

    def hear(self, place: int, piece: str) -> None:
        self.heard += piece

    def left(self, place: int) -> bool:
        return False


def test_who_listens_hears_our_own_steps(gpt: Run) -> None:
    listener = Listener()
    (answer,) = gpt.task(GREEDY).answer(Asked(["a"], audience=listener))
    assert answer.engine == "torch"
    assert listener.heard == answer.text == gpt.answers(["a"], GREEDY)[0].text
    assert "".join(gpt.pieces("a", GREEDY)) == answer.text


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.decoder.stack.blocks.0.mixers.0.positions.kind=distance"], "'distance'"),
        (["model.decoder.stack.blocks.0.mixers.0.radius=3"], "radius is 3"),
        (["model.decoder.stack.blocks.0.mixers.0.positions={kind: buckets, two_sided: false}"], "buckets"),
        (["model.decoder.head.rephrasing={}"], "rephrasing"),
        (["model.decoder.embedding.table=8"], "embedding.table is 8"),
        (["model.decoder.embedding.segments=2"], "embedding.segments is 2"),
    ],
)
def test_what_it_has_no_word_for_is_refused_by_its_name(
    settings: list[str], said: str, tmp_path: Path
) -> None:
    run = writer_of(writer(*settings), tmp_path / "run", ending=False)
    assert said in run.answered_by(GREEDY)
    assert run.answers(["a"], GREEDY)[0].engine == "torch"
    assert not (run.path / "ctranslate2").exists()


def test_nothing_is_converted_before_it_is_needed(tmp_path: Path) -> None:
    run = writer_of(writer(), tmp_path / "run", ending=False)
    assert run.answers(["a"])[0].engine == "torch"  # it draws
    assert not (run.path / "ctranslate2").exists()
    assert run.answers(["a"], GREEDY)[0].engine == "ctranslate2"
    assert (run.path / "ctranslate2").exists()


def test_int8_is_chosen_when_asked_for(gpt: Run) -> None:
    coarse = load(gpt.path, precision="int8")
    assert coarse.answered_by(GREEDY).startswith("ctranslate2, int8")
    assert coarse.answers(["a"], GREEDY)[0].engine == "ctranslate2"


def test_the_commands_say_who_answers(regard: Command, gpt: Run, tmp_path: Path) -> None:
    greedy = ("--greedy", "--tokens", "12")
    spoken = regard("run", gpt.path, *greedy, stdin="\n".join(PROMPTS[1:4]))
    assert spoken.err == f"engine: {gpt.answered_by(GREEDY)}\n"
    own = regard("run", gpt.path, *greedy, "--engine", "torch", stdin="\n".join(PROMPTS[1:4]))
    assert own.err == "engine: torch (as asked)\n"
    assert own.out == spoken.out
    drawn = regard("run", gpt.path, stdin=PROMPTS[1])
    assert drawn.err.startswith("engine: torch (it knows no search of kind 'sampling'")
    printed = regard("run", gpt.path, *greedy, "--json", stdin=PROMPTS[1]).json[0]
    assert printed["engine"] == "ctranslate2"
    (tmp_path / "text.txt").write_text(LONG)
    judged = regard("eval", gpt.path, "--data", tmp_path / "text.txt")
    assert judged.err == "engine: torch (a text is judged by our own steps)\n"
