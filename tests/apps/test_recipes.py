"""Every recipe at toy size: learns, saves, loads to identical output, resumes bit for bit, shows itself."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.apps.inspector import Inspected, question_of
from regard.apps.training import Trained, train
from regard.core.errors import UsageError
from regard.inspection.look import look
from regard.recipes.catalogue import RECIPES, recipe
from regard.recipes.system import SystemSpec
from regard.search.greedy import GreedySpec
from regard.search.ranking import RankingSpec
from regard.tasks.task import Wishes
from regard.training.events import Stepped, Watcher
from tests.apps.toys import examples, pairs, questions, toy

DIFFERENT = list({toy(name).digest(): name for name in reversed(RECIPES)}.values())[::-1]
"""Recipes that differ only in size are one at toy size: the first of them stands for all."""
PAIR_RECIPES = [name for name in DIFFERENT if recipe(name).data.kind() == "pairs"]
TEXT_RECIPES = [name for name in DIFFERENT if recipe(name).task.kind() == "continuation"]
LABEL_RECIPES = [name for name in DIFFERENT if recipe(name).task.kind() == "classification"]
STEPPING_RECIPES = [name for name in DIFFERENT if recipe(name).training.kind() == "gradient"]
NOTHING_TO_LOOK_AT = {
    *("seq2seq", "ngram", "char_lm", "rnn_lm", "awd_lstm"),
    *("word2vec", "cbow", "context2vec"),
    *("elmo", "ulmfit_lm", "ulmfit"),
    *("classifier", "text_cnn", "pair_classifier", "similarity"),
    *("tagger", "bilstm_tagger", "deep_tagger"),
    *("multiple_choice", "cove"),
}
NO_VECTORS = {"ngram", "word2vec", "cbow"}
every_recipe = pytest.mark.parametrize("name", DIFFERENT)
TRAIN, VALID = pairs(160), pairs(24, seed=1)


class PowerCutError(Exception):
    pass


class KillAt(Watcher):
    """Stands in for a power cut: nothing after this step is done."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, event: Stepped) -> None:
        if event.step == self.step:
            raise PowerCutError


def weights_of(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def losses_of(folder: Path) -> list[tuple[int, float]]:
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [(event["step"], event["loss"]) for event in events if event["event"] == "step"]


def learn(name: str, folder: Path, watchers: Sequence[Watcher] = ()) -> Trained:
    given, valid = examples(name, 160), examples(name, 24, seed=1)
    steps = 40 if name in STEPPING_RECIPES else None
    return train(toy(name), given, folder, valid=valid, steps=steps, seed=3, watchers=watchers)


class TrainedRuns(dict[str, regard.Run]):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> regard.Run:
        self[name] = learn(name, self.folder / name).run
        return self[name]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, regard.Run]:
    """Each recipe trained once, when it is first wanted, for all tests that only look."""
    return TrainedRuns(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("name", RECIPES)
def test_spec_survives_json_and_yaml(name: str) -> None:
    spec = recipe(name)
    assert SystemSpec.from_json(spec.to_json()) == spec
    assert SystemSpec.from_yaml(spec.to_yaml()) == spec


@pytest.mark.parametrize("name", STEPPING_RECIPES)
def test_learns(name: str, trained: dict[str, regard.Run]) -> None:
    losses = [loss for _, loss in losses_of(trained[name].path)]
    assert len(losses) == 40
    assert sum(losses[-8:]) < 0.9 * sum(losses[:8])


@every_recipe
def test_loads_to_identical_answers(name: str, trained: dict[str, regard.Run]) -> None:
    sources = questions(name)
    loaded = regard.load(trained[name].path)
    assert loaded.answers(sources) == trained[name].answers(sources)
    assert any(answer.text for answer in loaded.answers(sources))


@pytest.mark.parametrize("name", STEPPING_RECIPES)
def test_killed_run_ends_with_the_same_bits(
    name: str, trained: dict[str, regard.Run], tmp_path: Path
) -> None:
    for kill in (KillAt(7), KillAt(23)):
        with pytest.raises(PowerCutError):
            learn(name, tmp_path, [kill])
    learn(name, tmp_path)
    assert weights_of(tmp_path) == weights_of(trained[name].path)
    assert losses_of(tmp_path) == losses_of(trained[name].path)


@every_recipe
def test_answers_do_not_depend_on_the_batch(name: str, trained: dict[str, regard.Run]) -> None:
    run, sources = trained[name], questions(name)
    together = run.answers(sources, GreedySpec(longest_extra=15))
    for source, expected in zip(sources, together, strict=True):
        (alone,) = run.answers([source], GreedySpec(longest_extra=15))
        assert alone.text == expected.text
        assert alone.candidates[0].log_prob == pytest.approx(expected.candidates[0].log_prob, abs=1e-4)


@pytest.mark.parametrize("name", PAIR_RECIPES)
def test_score_of_run_equals_score_of_score(name: str, trained: dict[str, regard.Run]) -> None:
    run = trained[name]
    answers = run.answers([source for source, _ in VALID], GreedySpec())
    finished = [answer for answer in answers if answer.candidates[0].finished]
    scored = list(run.score([(answer.source, answer.text) for answer in finished]))
    assert finished
    for answer, score in zip(finished, scored, strict=True):
        assert score.pieces == answer.candidates[0].pieces
        assert score.token_log_probs == pytest.approx(answer.candidates[0].token_log_probs, abs=1e-4)


@pytest.mark.parametrize("name", LABEL_RECIPES)
def test_classes_score_as_they_are_answered(name: str, trained: dict[str, regard.Run]) -> None:
    run, asked = trained[name], questions(name)
    answers = run.answers(asked, RankingSpec(best=50))
    for answer in answers:
        found = [candidate.log_prob for candidate in answer.candidates]
        assert found == sorted(found, reverse=True)
        assert sum(map(math.exp, found)) == pytest.approx(1.0, abs=1e-5)
        scored = run.score([(answer.source, candidate.text) for candidate in answer.candidates])
        assert [score.log_prob for score in scored] == pytest.approx(found, abs=1e-4)


@every_recipe
def test_can_be_looked_into(name: str, trained: dict[str, regard.Run]) -> None:
    trace = trained[name].trace(questions(name)[-1])
    attentions = trace.attentions
    assert bool(attentions) == (name not in NOTHING_TO_LOOK_AT)
    for attention in attentions:
        assert torch.allclose(torch.from_numpy(attention.weights).sum(-1), torch.ones(()), atol=1e-5)


@every_recipe
def test_the_inspector_shows_it_all_and_can_change_it(name: str, trained: dict[str, regard.Run]) -> None:
    """Steps lead to the weights, a head that is off looks at nothing, no view fails for want of a part."""
    one, text = Inspected(trained[name].path), questions(name)[-1]
    seen = look(one.run.model, one.run.task(), question_of(text), steps=True)
    for attention in seen.trace.attentions:
        assert attention.steps is not None
        scores = np.where(attention.steps.allowed > 0, attention.steps.scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        np.testing.assert_allclose(powers / powers.sum(-1, keepdims=True), attention.weights, atol=1e-5)
    for attention in seen.trace.attentions[:1]:
        off = question_of(text, interventions=[{"do": "off", "name": attention.name, "heads": [0]}])
        changed = look(one.run.model, one.run.task(), off)
        same = next(other for other in changed.trace.attentions if other.name == attention.name)
        assert not same.weights[0].any()
        assert changed.before is not None
        assert changed.before.trace.log_probs == pytest.approx(seen.trace.log_probs, abs=1e-5)
    with pytest.raises(UsageError, match="nothing passed by the name"):
        one.look(question_of(text, interventions=[{"do": "cut", "name": "nowhere.at.all"}]))
    assert json.dumps([one.look(question_of(text)), one.facts(), one.cuts(text), one.positions()])
    if name not in NO_VECTORS:
        assert one.words([text])["places"]


@every_recipe
def test_leaves_a_report(name: str, trained: dict[str, regard.Run]) -> None:
    page = (trained[name].path / "report.html").read_text(encoding="utf-8")
    first = examples(name, 1, seed=1)[0]
    assert (first[:4].strip() if isinstance(first, str) else first[0]) in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("name", TEXT_RECIPES)
def test_a_text_scores_as_much_as_it_is_written_with(name: str, trained: dict[str, regard.Run]) -> None:
    run, prompt = trained[name], "abc d"
    (answer,) = run.answers([prompt], GreedySpec(longest_extra=5))
    best = answer.candidates[0]
    (scored,) = run.score([(prompt + best.text,)])
    own = scored.token_log_probs[len(prompt) : len(prompt) + len(best.text)]
    assert own == pytest.approx(best.token_log_probs[: len(own)], abs=1e-4)
    assert scored.pieces[-1] == "⟨end⟩"


@pytest.mark.parametrize("name", TEXT_RECIPES)
def test_what_is_streamed_is_what_is_answered(name: str, trained: dict[str, regard.Run]) -> None:
    run = trained[name]
    for prompt in ("", "abc de"):
        assert "".join(run.pieces(prompt)) == run(prompt)
        wishes = Wishes(stop=("f", " g"))
        assert "".join(run.pieces(prompt, wishes=wishes)) == run.answers([prompt], wishes=wishes)[0].text


@pytest.mark.parametrize("name", TEXT_RECIPES)
def test_an_answer_ends_before_a_stop(name: str, trained: dict[str, regard.Run]) -> None:
    run, prompt = trained[name], "abc d"
    (free,) = run.answers([prompt], GreedySpec(longest_extra=20))
    stop = free.text[3:5]
    (stopped,) = run.answers([prompt], GreedySpec(longest_extra=20), Wishes(stop=(stop,)))
    assert stopped.text == free.text[: free.text.index(stop)]
    assert stopped.candidates[0].finished


@pytest.mark.parametrize("name", TEXT_RECIPES)
def test_perplexity_is_that_of_the_scores(name: str, trained: dict[str, regard.Run]) -> None:
    """One document, short enough for any window: evaluation and scoring must agree exactly."""
    run, text = trained[name], "abc ghij"
    evaluation = run.evaluate([(text,)])
    (scored,) = run.score([(text,)])
    assert evaluation.scores["perplexity"] == pytest.approx(math.exp(-scored.log_prob / 9), rel=1e-5)
    assert evaluation.scores["word_perplexity"] == pytest.approx(math.exp(-scored.log_prob / 3), rel=1e-5)
    expected = -scored.log_prob / 9 / math.log(2)
    assert evaluation.scores["bits_per_character"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", TEXT_RECIPES)
def test_evaluation_agrees_with_validation(name: str, trained: dict[str, regard.Run]) -> None:
    """Two ways through the same text, with a little more or less context at the edges of windows."""
    run, given = trained[name], examples(name, 24, seed=1)
    evaluation = run.evaluate([(text,) for text in given])
    log = [json.loads(line) for line in (run.path / "log.jsonl").read_text().splitlines()]
    best = [event["scores"]["loss"] for event in log if event["event"] == "validation" and event["best"]][-1]
    assert math.log(evaluation.scores["perplexity"]) == pytest.approx(best, rel=0.08)
    assert evaluation.examples == 24
    assert f"tokens:{sum(len(text) + 1 for text in given)}" in evaluation.signature


def test_empty_lines_stay_empty_and_order_is_kept(trained: dict[str, regard.Run]) -> None:
    run = trained["bahdanau"]
    answers = run(["", "abc", "", "f", "abcdef"])
    assert answers[0] == answers[2] == ""
    assert answers[1] == run("abc")
    assert answers[4] == run("abcdef")


def test_another_run_is_not_overwritten(trained: dict[str, regard.Run]) -> None:
    folder = trained["luong"].path
    before = weights_of(folder)
    with pytest.raises(UsageError, match=r"training\.clip.*1\.0.*5\.0"):
        train(toy("luong", "training.clip=5.0"), TRAIN, folder, valid=VALID, steps=40, seed=3)
    with pytest.raises(UsageError, match="seed is 3 there, 4 now"):
        train(toy("luong"), TRAIN, folder, valid=VALID, steps=40, seed=4)
    with pytest.raises(UsageError, match="fingerprint"):
        train(toy("luong"), TRAIN[1:], folder, valid=VALID, steps=40, seed=3)
    assert weights_of(folder) == before


def test_starts_from_another_run(trained: dict[str, regard.Run], tmp_path: Path) -> None:
    first = losses_of(trained["transformer"].path)[0][1]
    more = train(
        toy("transformer"),
        TRAIN,
        tmp_path,
        valid=VALID,
        steps=2,
        seed=5,
        start_from=trained["transformer"].path,
    )
    assert losses_of(more.run.path)[0][1] < 0.9 * first
