"""Multiple choice: files of any form, a softmax over the choices of one question, however many there are."""

import json
import math
from pathlib import Path

import pytest
import torch

import regard
from regard.apps.training import train
from regard.core.errors import DataError, UsageError
from regard.data.choices import ChoicesSpec
from regard.data.tokenizers import TokenizerSpec
from regard.heads.labels import ChoiceSpec
from regard.search.ranking import RankingSpec
from tests.apps.toys import chosen, toy

SPEC = ChoicesSpec(tokenizer=TokenizerSpec(unit="character", size=60), batch_tokens=100, longest=24)
TEXT = "it rains take\twet\tdry"


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "it rains take\twet\tdry\t1\n"),
        ("a.tsv", "label\tcontext\tquestion\tchoice1\tchoice2\n1\tit rains\ttake\twet\tdry\n"),
        ("a.csv", 'context,ending0,ending1,label\n"it rains take",wet,dry,1\n'),
        ("a.csv", "context,option_a,option_b,answer\nit rains take,wet,dry,B\n"),
        ("a.jsonl", '{"context": "it rains take", "choices": ["wet", "dry"], "label": 1}\n'),
        (
            "a.jsonl",
            '{"article": "it  rains", "question": "take", "options": ["wet", "dry"], "answer": "b"}\n',
        ),
        (
            "a.jsonl",
            '{"question": "it rains take", "choices": {"text": ["wet", "dry"]}, "answerKey": "dry"}\n',
        ),
        ("a.json", '[{"ctx": "it rains take", "ending0": "wet", "ending1": "dry", "label": "1"}]'),
    ],
)
def test_files_of_any_form(tmp_path: Path, name: str, text: str) -> None:
    assert SPEC.records(write(tmp_path / name, text)) == [(TEXT, "1")]


def test_columns_that_a_person_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "7\t2\tit rains take\twet\tdry\n")
    named = ("-", "label", "context", "choice", "choice")
    spec = SPEC.model_copy(update={"columns": named, "counts_from": 1})
    assert spec.records(path) == [(TEXT, "1")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tb\tc\t5\n", r"a\.tsv:1: label: expected a number from 0 to 1.*found '5'"),
        (
            "a\tb\tc\t0\na\tb\t0\n",
            r"a\.tsv:2: expected 4 columns \(context, choice, choice, label\), found 3",
        ),
        ("a\tb\t0\n", r"a\.tsv:1: a question needs two choices or more, found 1"),
        ("a\t \tc\t0\n", r"a\.tsv:1: a choice is empty"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        SPEC.records(write(tmp_path / "a.tsv", text))


def test_a_question_without_a_label_is_refused_where_one_is_needed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"context": "a", "choices": ["b", "c"]}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:1: it is not said which choice is right"):
        SPEC.records(path)


def test_every_choice_is_a_row_behind_what_is_given() -> None:
    rows = chosen(30)
    prepared = SPEC.prepare(rows, rows[:4], 1, None, None)
    tokenizer = prepared.lexicon["text"]
    for batch in prepared.epoch(0):
        texts = [tokenizer.decode(ids[real].tolist()) for ids, real in zip(*batch.tokens[:2], strict=True)]
        for number, row in enumerate(batch.rows):
            text, right = rows[row]
            given, *choices = text.split("\t")
            own = texts[number * batch.alternatives : (number + 1) * batch.alternatives]
            assert own[: len(choices)] == [given + choice for choice in choices]
            assert batch.wanted[number].tolist() == [int(right), len(choices)]
    parts = prepared.epoch(0)[0].split(2)
    assert sum(len(part.rows) for part in parts) == len(prepared.epoch(0)[0].rows)


def test_the_cost_is_a_softmax_over_the_choices_there_are() -> None:
    head = ChoiceSpec().build(8, 0)
    scores = torch.tensor([[1.0], [2.0], [9.0], [0.5], [0.0], [-1.0]])
    cost = head.cost(scores, torch.tensor([[1, 2], [2, 3]]), None)
    by_hand = -math.log(math.e**2 / (math.e + math.e**2))
    by_hand -= math.log(math.e**-1 / (math.e**0.5 + 1 + math.e**-1))
    assert float(cost.loss) == pytest.approx(by_hand, rel=1e-6)
    assert cost.predictions == 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    still = ("model.encoder.embedding.dropout=0", "model.head.dropout=0")
    out = tmp_path_factory.mktemp("run") / "a"
    return train(toy("multiple_choice", *still), chosen(160), out, valid=chosen(24, 1), steps=60, seed=3).run


def test_it_learns_to_choose(run: regard.Run) -> None:
    evaluation = run.evaluate(chosen(60, seed=5))
    assert evaluation.scores["accuracy"] > 0.9
    assert "chance:0." in evaluation.signature


def test_the_order_of_choices_is_of_no_importance(run: regard.Run) -> None:
    """Each is read by itself, so they may be turned round, and their probabilities sum to one."""
    for text, _ in chosen(8, seed=2):
        given, *choices = text.split("\t")
        (one,) = run.answers([text], RankingSpec(best=9))
        (other,) = run.answers(["\t".join((given, *choices[::-1]))], RankingSpec(best=9))
        assert [c.text for c in one.candidates] == [c.text for c in other.candidates]
        found = [c.log_prob for c in one.candidates]
        assert found == pytest.approx([c.log_prob for c in other.candidates], abs=1e-5)
        assert sum(map(math.exp, found)) == pytest.approx(1.0, abs=1e-5)
        for candidate in one.candidates:
            assert choices[candidate.facts["choice"]] == candidate.text
        scored = run.score([(text, str(c.facts["choice"])) for c in one.candidates])
        assert [score.log_prob for score in scored] == pytest.approx(found, abs=1e-5)


def test_lines_may_be_objects(run: regard.Run) -> None:
    text = chosen(1, seed=7)[0][0]
    given, *choices = text.split("\t")
    assert run(json.dumps({"context": given, "choices": choices})) == run(text)


def test_bad_questions_are_named_with_their_line(run: regard.Run) -> None:
    with pytest.raises(DataError, match="line 2: a question needs two choices or more, found 0"):
        run(["a\tb\tc", "just a line"])
    with pytest.raises(UsageError, match="--metric f1: choices are judged by accuracy"):
        run.evaluate(chosen(2), metric="f1")
