"""Taggers: spans counted as seqeval and conlleval count, long sentences as one, every tag lawful."""

import json
import random
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB1, IOB2, IOBES

import regard
from regard.apps.columns import blocks_of
from regard.apps.commands.answering import run as regard_run
from regard.apps.training import train
from regard.core.errors import DataError, UsageError
from regard.data.column_files import ColumnSpec, read_column_blocks
from regard.data.tag_schemes import Scheme, convert, spans_of
from regard.recipes.catalogue import recipe
from regard.tasks.span_scores import tag_scores
from regard.tasks.tagging import Tagging
from tests.apps.toys import tagged, toy

marks = st.sampled_from(["O", "B-A", "I-A", "B-C", "I-C"])


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    lengths = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    return tuple([draw(st.lists(marks, min_size=n, max_size=n)) for n in lengths] for _ in range(2))


@given(corpora())
def test_span_scores_are_those_of_seqeval(corpus: tuple[list[list[str]], list[list[str]]]) -> None:
    found, wanted = corpus
    ours = tag_scores(found, wanted)
    theirs = (f1_score, precision_score, recall_score)
    for name, score in zip(("f1", "precision", "recall"), theirs, strict=True):
        assert ours[name] == pytest.approx(100 * score(wanted, found, zero_division=0), abs=1e-9)


@pytest.mark.parametrize(("scheme", "strict"), [("iob1", IOB1), ("bio", IOB2), ("bioes", IOBES)])
@given(corpus=corpora())
def test_lawful_tags_score_alike_in_every_scheme(
    scheme: Scheme, strict: type, corpus: tuple[list[list[str]], list[list[str]]]
) -> None:
    """Where nothing is broken, the lenient reading and seqeval's strict one agree."""
    found, wanted = ([convert(tags, scheme) for tags in side] for side in corpus)
    score = f1_score(wanted, found, mode="strict", scheme=strict, zero_division=0)
    assert tag_scores(found, wanted)["f1"] == pytest.approx(100 * score, abs=1e-9)


def test_conllevals_own_reading_of_broken_tags() -> None:
    """From its rules: a change of type ends a chunk, an I after O begins one."""
    found = [["I-A", "I-A", "I-C", "O", "I-C", "B-C"]]
    wanted = [["B-A", "I-A", "B-C", "O", "O", "B-C"]]
    scores = tag_scores(found, wanted)
    assert (scores["precision"], scores["recall"]) == (75.0, 100.0)
    assert scores["accuracy"] == pytest.approx(3 / 6)


def test_overlap_by_hand() -> None:
    #            0    1    2    3    4    5    6    7
    wanted = ["B", "I", "I", "I", "O", "B", "I", "O"]
    found = ["O", "B", "I", "O", "O", "O", "B", "I"]
    scores = tag_scores([found], [wanted])
    assert scores["f1"] == 0.0
    assert scores["binary_f1"] == 100.0
    precision, recall = (1.0 + 0.5) / 2, (0.5 + 0.5) / 2
    assert scores["proportional_f1"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))


def test_other_types_do_not_overlap() -> None:
    scores = tag_scores([["B-A", "I-A"]], [["B-C", "I-C"]])
    assert scores["binary_f1"] == scores["proportional_f1"] == 0.0


def test_classes_of_words_have_no_spans() -> None:
    assert tag_scores([["NN", "VB", "I"]], [["NN", "NN", "I"]]) == {
        "accuracy": pytest.approx(2 / 3),
        "f1": pytest.approx(200 / 3),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tagger")


def names(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Words that begin with a are names, together with those next to them."""
    rows = [words for words, _ in tagged(count, seed)]
    inside = [["I-N" if word[0] == "a" else "O" for word in words.split()] for words in rows]
    return [(words, " ".join(convert(tags, "bio"))) for words, tags in zip(rows, inside, strict=True)]


@pytest.fixture(scope="module")
def run(folder: Path) -> regard.Run:
    return train(
        toy("bilstm_tagger"), names(160), folder / "run", valid=names(24, seed=1), steps=50, seed=3
    ).run


def test_broken_emissions_are_tagged_lawfully(run: regard.Run) -> None:
    rng = random.Random(1)
    asked = [" ".join(rng.choices(["x", "aa", "q", "cc", "zz zz"], k=rng.randint(1, 12))) for _ in range(40)]
    for answer in run.answers(asked):
        tags = answer.text.split()
        assert len(tags) == len(answer.source.split())
        assert convert(tags, "bioes") == tags


def cut(run: regard.Run, longest: int) -> Tagging:
    spec = run.spec.override([f"data.longest={longest}"])
    task = regard.Run(run.path, spec, run.model, run.lexicon, run.device).task()
    assert isinstance(task, Tagging)
    return task


def test_a_sentence_in_several_rows_is_tagged_as_one(run: regard.Run) -> None:
    """Rows of two words each: spans reach over their ends, and every word has a tag."""
    sentence = ["x", "aa", "ab", "ba", "aa", "ab", "cc"]
    task = cut(run, 4)
    assert [len(row.places) for row in task.data.readings(task.tokenizer, [sentence])[0]] == [2, 2, 2, 1]
    (scores,) = task._scores([sentence])
    apart = [task._scores([part])[0] for part in (sentence[:2], sentence[2:4], sentence[4:6], sentence[6:])]
    assert torch.allclose(scores, torch.cat(apart), atol=1e-5)
    # Emissions that want one long span: over the ends of the rows it stays one.
    tags = run.lexicon.labels["label"].names
    wanted = ["O", "B-N", "I-N", "I-N", "I-N", "E-N", "O"]
    bent = torch.zeros(7, len(tags))
    bent[range(7), [tags.index(tag) for tag in wanted]] = 20.0
    task._scores = lambda sentences: [bent]  # type: ignore[method-assign]
    (found, _), *_ = task._judged([sentence])
    assert spans_of([tags[number] for number in found]) == [("N", 1, 6)]


def test_probabilities_of_every_word(run: regard.Run) -> None:
    (answer,) = run.answers(["x aa cc dd"])
    facts = answer.candidates[0].to_dict()
    assert [entry["word"] for entry in facts["words"]] == ["x", "aa", "cc", "dd"]
    for entry, log_prob, tag in zip(facts["words"], facts["token_log_probs"], facts["pieces"], strict=True):
        assert entry["tag"] == tag
        values = list(entry["probabilities"].values())
        assert values == sorted(values, reverse=True)
        assert sum(values) <= 1 + 1e-4
        assert entry["probabilities"][tag] == pytest.approx(torch.tensor(log_prob).exp().item(), abs=1e-5)
    words = answer.source.split()
    assert facts["spans"] == [
        {"type": type_, "begin": begin, "end": end, "text": " ".join(words[begin:end])}
        for type_, begin, end in spans_of(facts["pieces"])
    ]
    assert facts["spans"]
    (scored,) = run.score([("x aa cc dd", answer.text)])
    assert scored.token_log_probs == pytest.approx(answer.candidates[0].token_log_probs, abs=1e-4)


def test_empty_lines_and_unknown_words(run: regard.Run) -> None:
    answers = run.answers(["", "never seen x aa", "  "])
    assert [answer.text for answer in answers][::2] == ["", ""]
    assert len(answers[1].text.split()) == 4


def test_tags_unseen_in_training_count_as_wrong(run: regard.Run) -> None:
    evaluation = run.evaluate([("x aa cc", "O S-NEW O")])
    assert evaluation.scores["recall"] == 0.0
    with pytest.raises(DataError, match=r"line 1: label: there is no class 'S-NEW'"):
        list(run.score([("x aa cc", "O S-NEW O")]))


def test_mistakes_are_named(run: regard.Run) -> None:
    with pytest.raises(DataError, match="line 2: 2 words, but 1 tags"):
        run.evaluate([("x", "O"), ("x aa", "O")])
    with pytest.raises(UsageError, match=r"--metric bleu: these tags are judged by f1, precision"):
        run.evaluate([("x", "O")], metric="bleu")
    assert run.evaluate([("x aa", "O S-N")], metric="binary_f1").metric == "binary_f1"


def test_classes_of_words_are_learned_by_the_same_recipe(folder: Path) -> None:
    """Parts of speech mark no spans: nothing is converted, nothing forbidden, accuracy counts."""
    rows = [(words, " ".join(word[0].upper() for word in words.split())) for words, _ in tagged(80)]
    trained = train(toy("bilstm_tagger"), rows, folder / "pos", valid=rows[:8], steps=10, seed=3).run
    assert trained.evaluate(rows[:8]).metric == "accuracy"
    assert "spans" not in trained.answers(["x aa"])[0].candidates[0].facts
    assert set(trained.lexicon.labels["label"].names) == {"X", "A", "B", "C", "D"}


def test_iob1_is_learned_as_what_the_recipe_learns(folder: Path) -> None:
    rows = [(words, " ".join(convert(tags.split(), "iob1"))) for words, tags in tagged(80)]
    trained = train(toy("tagger"), rows, folder / "iob1", valid=rows[:8], steps=10, seed=3).run
    assert set(trained.lexicon.labels["label"].names) == {"O", "B-N", "I-N"}
    as_it_is = toy("tagger", "data.scheme=null")
    trained = train(as_it_is, rows, folder / "as it is", valid=rows[:8], steps=10, seed=3).run
    task = trained.task()
    assert isinstance(task, Tagging)
    assert task._allowed is None  # B and I alone may be either scheme: nothing is forbidden


def test_a_column_file_gets_one_column_more(
    run: regard.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "-DOCSTART- X O\n\nx NN O\naa NN B-N\n\n\ncc NN O\n"
    path = tmp_path / "a.conll"
    path.write_text(given)
    regard_run(run.path, path, columns=True)
    lines = capsys.readouterr().out.splitlines()
    bare = [line if line.count(" ") < 3 else line.rpartition(" ")[0] for line in lines]
    assert "\n".join(bare) + "\n" == given
    tags = [line.rpartition(" ")[2] for line in lines if line.count(" ") == 3]
    assert tags == [*run("x aa").split(), *run("cc").split()]
    regard_run(run.path, path, columns=True, as_json=True)
    assert [json.loads(line)["source"] for line in capsys.readouterr().out.splitlines()] == ["x aa", "cc"]


def test_columns_keep_their_tabs_comments_and_blanks_inside_words(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text("# text = x y\n1\tx\t_\n2\tnew y\t_\n\n")
    (block,) = read_column_blocks(path, ColumnSpec(word=1, conll_u=True))
    assert block.text == "x new\u00a0y"
    assert block.with_column(["A", "B"]) == ["# text = x y", "1\tx\t_\tA", "2\tnew y\t_\tB", ""]
    path.write_text("x y\nz\n")
    with pytest.raises(DataError, match=r"a\.conllu:2: expected 2 columns between blanks, found 1"):
        list(read_column_blocks(path, ColumnSpec()))


def test_columns_are_for_taggers(run: regard.Run) -> None:
    other = regard.Run(run.path, recipe("classifier"), run.model, run.lexicon, run.device)
    with pytest.raises(UsageError, match=r"--columns: .* tags no words"):
        blocks_of(other, Path("-"))
