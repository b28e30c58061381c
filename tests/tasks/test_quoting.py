"""Answers quoted from a text: exact to the character, over all windows, judged as SQuAD's script judges."""

import json
import math
import re
import string
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard.apps.training import train
from regard.core.errors import DataError, UsageError
from regard.core.sequences import Places
from regard.data.quote_files import Question, Quote
from regard.data.quotes import QuotesSpec
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.heads.quotes import QuoteSpec
from regard.search.ranking import RankingSpec
from regard.tasks.quote_scores import exact, f1, normal, quote_scores
from regard.tasks.quoting import Quoting, _quotes
from tests.apps.toys import quoted, toy

SPEC = QuotesSpec(
    tokenizer=TokenizerSpec(unit="word", size=200, lowercase=True),
    batch_tokens=64,
    longest=16,
    longest_question=4,
    stride=4,
)
CONTEXT = "Ada  met Mr. Byron, in Bath—twice."
QUESTION = Question("Whom?", CONTEXT, (Quote(9, "Mr. Byron"), Quote(13, "Byron")), "7")


def squad(*, version: int = 1) -> dict[str, Any]:
    asked: list[dict[str, Any]] = [
        {
            "id": "7",
            "question": "Whom?",
            "answers": [
                {"text": "Mr. Byron", "answer_start": 9},
                {"text": "Byron", "answer_start": 13},
            ],
        }
    ]
    if version == 2:
        asked[0]["is_impossible"] = False
        wrong = [{"text": "Bath", "answer_start": 23}]
        asked.append(
            {"id": "8", "question": "Why?", "is_impossible": True, "answers": [], "plausible_answers": wrong}
        )
    return {"version": "x", "data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": asked}]}]}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_squad_as_it_comes(tmp_path: Path) -> None:
    one = write(tmp_path / "v1.json", json.dumps(squad()))
    assert SPEC.questions(one) == [QUESTION]
    two = write(tmp_path / "v2.json", json.dumps(squad(version=2), indent=1))
    assert SPEC.questions(two) == [QUESTION, Question("Why?", CONTEXT, (), "8")]
    assert SPEC.records(str(two))[1] == (f"Why?\t{CONTEXT}", "")


@pytest.mark.parametrize(
    "item",
    [
        {
            "context": CONTEXT,
            "qas": [{"id": "7", "question": "Whom?", "answers": [[9, "Mr. Byron"], [13, "Byron"]]}],
        },
        {
            "id": "7",
            "context": CONTEXT,
            "question": "Whom?",
            "answers": {"text": ["Mr. Byron", "Byron"], "answer_start": [9, 13]},
        },
        {"id": 7, "text": CONTEXT, "query": "Whom?", "answers": ["Mr. Byron", "Byron"]},
    ],
)
def test_objects_a_line(tmp_path: Path, item: dict[str, Any]) -> None:
    assert SPEC.questions(write(tmp_path / "a.jsonl", json.dumps(item) + "\n")) == [QUESTION]


def test_tables(tmp_path: Path) -> None:
    single = QUESTION._replace(quotes=QUESTION.quotes[:1], name="")
    rows = f"start\tquestion\tanswer\tcontext\n9\tWhom?\tMr. Byron\t{CONTEXT}\n\tWhy?\t\t{CONTEXT}\n"
    assert SPEC.questions(write(tmp_path / "a.tsv", rows)) == [single, Question("Why?", CONTEXT, ())]
    csv = f'context,question,answer\n"{CONTEXT}",Whom?,Mr. Byron\n'
    assert SPEC.questions(write(tmp_path / "a.csv", csv)) == [single]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"context": "a b", "question": "q", "answer": "b", "start": 1}',
            r"1: the answer 'b' .*at 1, where ' ' is; it is at 2",
        ),
        ('{"context": "a b", "question": "q", "answer": "c"}', r"1: the answer 'c' is not in the text"),
        ('{"context": "", "question": "q"}', r"1: the text that is read for it is empty"),
        ('{"contxt": "a", "question": "q"}', r"1: there is no 'context'.*did you mean 'contxt'"),
        (
            '{"context": "a", "qas": [{"id": "9", "question": "q", "answers": ["z"]}]}',
            r"1: question 9: the answer 'z'",
        ),
        ("[3]", r"expected an object with 'context'"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        SPEC.questions(write(tmp_path / "a.jsonl", text + "\n"))


UNITS = ("word", "blank", "character", "bpe", "byte_bpe", "wordpiece")
TEXTS = [CONTEXT, "naïve café 東京 costs 3.50€ — “so”", "tabs\u00a0and  blanks"]


@pytest.mark.parametrize("unit", UNITS)
def test_every_window_holds_the_tokens_it_says_and_none_is_lost(unit: Any) -> None:
    spec = SPEC.model_copy(update={"tokenizer": TokenizerSpec(unit=unit, size=400)})
    tokenizer = Tokenizer.train(spec.tokenizer, TEXTS)
    for read, text in zip(spec.windows_of(tokenizer, [("so?", text) for text in TEXTS]), TEXTS, strict=True):
        ids = tokenizer.encode(text)
        assert len(read.offsets) == len(ids)
        seen = set[int]()
        for part in read.parts:
            assert len(part.reading.ids) <= spec.longest
            held = [part.reading.ids[place] for place in part.reading.places[1:]]
            assert held == ids[part.first : part.first + len(held)]
            seen |= set(range(part.first, part.first + len(held)))
        assert seen == set(range(len(ids)))
        covered = "".join(text[begin:end] for begin, end in sorted(set(read.offsets)))
        if unit != "byte_bpe":
            assert re.sub(r"\s", "", covered) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_wanted_of_a_window_points_at_the_answer(unit: Any) -> None:
    spec = SPEC.model_copy(update={"tokenizer": TokenizerSpec(unit=unit, size=400), "longest": 24})
    prepared = spec.prepare([(f"so?\t{t}", "3.50") for t in TEXTS[1:2]] * 2, [("x\ty", "y")], 1, None, None)
    tokenizer = prepared.lexicon["text"]
    (read,) = spec.windows_of(tokenizer, [("so?", TEXTS[1])])
    wanted = [example.wanted for example in prepared._train.encoded[: len(read.parts)]]
    hits = [(part, pair) for part, pair in zip(read.parts, wanted, strict=True) if pair != [0, 0]]
    assert hits, unit
    for part, (begin, end) in hits:
        first, last = part.first + begin - 1, part.first + end - 1
        quote = TEXTS[1][read.offsets[first][0] : read.offsets[last][1]]
        assert "3.50" in quote
        assert unit == "blank" or len(quote) <= len("3.50€")


def test_words_of_the_question_are_marked_in_the_text() -> None:
    spec = SPEC.model_copy(update={"matches": True})
    tokenizer = Tokenizer.train(spec.tokenizer, TEXTS)
    (read,) = spec.windows_of(tokenizer, [("met byron", CONTEXT)])
    reading = read.parts[0].reading
    pieces = tokenizer.pieces(reading.ids)
    assert [p for p, s in zip(pieces, reading.segments, strict=True) if s == 2] == ["met", "byron"]
    assert set(reading.segments[: reading.second]) == {0}


def test_the_cost_is_two_softmaxes_over_the_places_there_are() -> None:
    scores = torch.tensor([[[1.0, 0.0], [2.0, 1.0], [9.0, 9.0]]])
    places = Places(torch.tensor([[0, 3, 0]]), torch.tensor([[True, True, False]]))
    cost = QuoteSpec().build(4, 0).cost(scores, torch.tensor([[1, 0]]), places)
    by_hand = -math.log(math.e**2 / (math.e + math.e**2)) - math.log(1 / (1 + math.e))
    assert float(cost.loss) == pytest.approx(by_hand, rel=1e-6)


def test_odds_are_those_of_every_pair_in_order() -> None:
    scores = torch.randn(6, 2)
    table = _quotes(scores, 3)
    for i in range(5):
        for n in range(3):
            j = i + n
            expected = float(scores[i + 1, 0] + scores[j + 1, 1] - scores[0].sum()) if j < 5 else -math.inf
            assert float(table[i, n]) == pytest.approx(expected, abs=1e-5)


# SQuAD's official evaluation (v2.0), written anew from its description.
def their_normal(text: str) -> str:
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def their_f1(gold: str, said: str) -> float:
    a, b = their_normal(gold).split(), their_normal(said).split()
    same = sum((Counter(a) & Counter(b)).values())
    if not a or not b:
        return float(a == b)
    if same == 0:
        return 0.0
    precision, recall = same / len(b), same / len(a)
    return 2 * precision * recall / (precision + recall)


words = st.lists(st.sampled_from(["the", "A", "cat", "Cat,", "sat", "an", "x-y"]), max_size=5).map(" ".join)


@given(words, words)
def test_scores_of_one_answer(said: str, gold: str) -> None:
    assert normal(said) == their_normal(said)
    assert f1(said, gold) == pytest.approx(their_f1(gold, said))
    assert exact(said, gold) == float(their_normal(said) == their_normal(gold))


def test_scores_of_many_answers() -> None:
    """Values of the official script: "the" and case do not count, the best right answer does."""
    right = [["Denver Broncos", "The Broncos"], ["1867"], [""], [""]]
    scores = quote_scores(["broncos", "in 1867", "", "something"], right)
    assert scores["exact_match"] == pytest.approx(100 * (1 + 0 + 1 + 0) / 4)
    assert scores["f1"] == pytest.approx(100 * (1 + 2 / 3 + 1 + 0) / 4)
    assert scores["f1_answered"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert scores["f1_unanswerable"] == 50.0
    assert set(quote_scores(["a b"], [["b"]])) == {"f1", "exact_match"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quoting")


@pytest.fixture(scope="module")
def run(folder: Path) -> regard.Run:
    return train(
        toy("span_answerer"), quoted(160), folder / "run", valid=quoted(24, seed=1), steps=50, seed=3
    ).run


def test_it_finds_answers_that_are_slices_of_the_text(run: regard.Run) -> None:
    evaluation = run.evaluate(quoted(30, seed=5))
    assert evaluation.scores["exact_match"] > 80
    assert evaluation.signature.startswith("SQuAD|rules:1.1")
    for answer in run.answers([text for text, _ in quoted(10, seed=5)], RankingSpec(best=6)):
        context = answer.source.split("\t")[1]
        for candidate in answer.candidates:
            assert context[candidate.facts["begin"] : candidate.facts["end"]] == candidate.text != ""
        found = [candidate.log_prob for candidate in answer.candidates]
        assert found == sorted(found, reverse=True)
        best = answer.candidates[0]
        assert best.facts["probability"] == pytest.approx(math.exp(best.log_prob))


def test_probabilities_of_all_quotes_sum_to_one(run: regard.Run) -> None:
    (answer,) = run.answers(["x\tab xy"], RankingSpec(best=1000))
    assert len(answer.candidates) == 10  # from each of four letters to itself and to those behind it
    assert sum(candidate.facts["probability"] for candidate in answer.candidates) == pytest.approx(1.0)


def test_a_long_text_is_searched_in_all_its_windows(run: regard.Run) -> None:
    """The answer far behind the first window is found where it is, and alone it has the same odds."""
    long = " ".join(["ab", "bc"] * 30 + ["xyz"] + ["ba"] * 20)
    (answer,) = run.answers([f"x\t{long}"])
    best = answer.candidates[0]
    assert (best.text, best.facts["begin"]) == ("xyz", long.index("xyz"))
    task = run.task()
    assert isinstance(task, Quoting)
    (read,) = task.data.windows_of(task.tokenizer, [("x", long)])
    assert len(read.parts) > 10
    (odds,) = task._odds([read])
    for part in read.parts[::5]:
        scores, _ = task._judge([part.reading])
        alone = _quotes(scores[0].detach(), task.spec.longest_answer)
        held = odds.table[part.first : part.first + len(alone)]
        blank = held.isinf()
        assert bool((held >= alone - 1e-4)[~blank].all())


def test_scores_agree_with_answers(run: regard.Run) -> None:
    for text, _ in quoted(5, seed=8):
        (answer,) = run.answers([text])
        if text.count(answer.text) == 1:
            (scored,) = run.score([(text, answer.text)])
            assert scored.log_prob == pytest.approx(answer.candidates[0].log_prob, abs=1e-4)
    assert next(iter(run.score([("x\tab", "never")]))).log_prob == -math.inf


def test_nothing_is_answered_where_nothing_is(folder: Path) -> None:
    """Half of the texts have no answer: the model learns to say so, and a threshold moves it."""
    rows = quoted(120) + [
        (text.replace("x", "b", 2).replace("b\t", "x\t", 1), "") for text, _ in quoted(120, 7)
    ]
    rows = [(text, answer) for text, answer in rows if bool(answer) == ("xy" in text)]
    trained = train(toy("span_answerer"), rows, folder / "two", valid=rows[::9], steps=70, seed=3).run
    assert trained.evaluate(rows[::5]).scores["f1_unanswerable"] > 70
    (answer,) = trained.answers(["x\tab bc ca"], RankingSpec(best=3))
    assert answer.text == ""
    assert answer.candidates[0].facts["begin"] is None
    eager = trained.spec.override(["task.threshold=-100"])
    (answer,) = regard.Run(trained.path, eager, trained.model, trained.lexicon, trained.device).answers(
        ["x\tab bc ca"]
    )
    assert answer.text != ""


def test_lines_may_be_objects_and_bad_ones_are_named(run: regard.Run) -> None:
    assert run('{"question": "x", "context": "ab xy"}') == run("x\tab xy")
    with pytest.raises(DataError, match="line 2: expected a question, a tab, and the text"):
        run(["x\tab", "no tab here"])
    with pytest.raises(UsageError, match="--metric bleu: quoted answers are judged by f1 and exact_match"):
        run.evaluate(quoted(2), metric="bleu")
