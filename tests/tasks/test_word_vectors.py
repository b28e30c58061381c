"""Neighbours, sums and analogies of hand-made vectors; correlations against scipy."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

import regard
from regard.apps.exchange import import_run
from regard.core.errors import DataError, UsageError
from regard.data.lexicon import Lexicon
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.data.word_windows import WordWindowsSpec
from regard.data.words import words_of
from regard.interop.vector_files import write_vectors
from regard.models.word_vectors import WordVectorsSpec
from regard.search.ranking import RankingSpec
from regard.tasks.correlation import spearman
from regard.tasks.task import Asked, Means
from regard.tasks.word_vectors import WordVectorsTask, WordVectorsTaskSpec

VECTORS = {
    "man": [1.0, 0.0, 0.0],
    "woman": [1.0, 1.0, 0.0],
    "king": [2.0, 0.0, 2.5],
    "queen": [2.0, 2.0, 2.5],
    "apple": [-1.0, 0.5, -3.0],
}


def task(best: int = 3) -> WordVectorsTask:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="word", size=50), [" ".join(VECTORS)])
    model = WordVectorsSpec(width=3).build({"text": tokenizer.size})
    with torch.no_grad():
        for word, number in words_of(tokenizer).items():
            model.words.weight[number] = torch.tensor(VECTORS[word])
    means = Means(
        model,
        Lexicon({"text": tokenizer}),
        WordWindowsSpec(),
        RankingSpec(best=best),
        torch.device("cpu"),
    )
    made = WordVectorsTaskSpec().build(means)
    assert isinstance(made, WordVectorsTask)
    return made


def test_neighbours_are_ranked_by_cosine() -> None:
    (answer,) = task(best=4).answer(Asked(["man"]))
    cosines = {
        word: float(np.dot(vector, VECTORS["man"]) / np.linalg.norm(vector))
        for word, vector in VECTORS.items()
        if word != "man"
    }
    expected = sorted(cosines, key=lambda word: -cosines[word])
    assert [candidate.text for candidate in answer.candidates] == expected
    assert [candidate.score for candidate in answer.candidates] == pytest.approx(
        [cosines[word] for word in expected]
    )


@pytest.mark.parametrize("question", ["king - man + woman", "man : king :: woman : ?", "man:king :: woman:?"])
def test_a_king_without_a_man_but_with_a_woman(question: str) -> None:
    (answer,) = task().answer(Asked([question]))
    assert answer.text == "queen"
    assert not {"king", "man", "woman"} & {candidate.text for candidate in answer.candidates}


def test_what_is_shown_has_its_cosine() -> None:
    made = task()
    (answer,) = made.answer(Asked(["man"]))
    assert made.shown("man", answer.text) == f"{answer.text}\t{answer.candidates[0].score:.4f}"


def test_capitals_are_found_in_small_letters() -> None:
    assert task().answer(Asked(["Man"]))[0].text == task().answer(Asked(["man"]))[0].text


def test_an_unknown_word_is_named_with_its_line_and_the_nearest() -> None:
    with pytest.raises(DataError, match=r"line 8: there is no vector for 'kin' .*'king'"):
        task().answer(Asked(["man", "kin"], first_line=7))


def test_correlation_is_that_of_scipy() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 9, 50).astype(float), random.normal(size=50)
    assert spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic)


def test_similarity_files_are_judged_on_what_is_known() -> None:
    records = [("man", "woman", "9"), ("king", "queen", "8"), ("man", "apple", "1"), ("man", "xyz", "5")]
    evaluation = task().evaluate(records)
    assert evaluation.scores["coverage"] == 0.75
    assert evaluation.examples == 3
    assert evaluation.value == pytest.approx(0.5)  # cosines rank king–queen first, man–woman second
    assert "pairs:3 of 4 known" in evaluation.signature


def test_analogies_are_judged_by_heading() -> None:
    records = [
        ("royal", "man", "king", "woman", "queen"),
        ("fruit", "man", "king", "woman", "apple"),
        ("fruit", "man", "king", "woman", "pear"),
    ]
    evaluation = task().evaluate(records)
    assert evaluation.scores == {
        "accuracy": 0.5,
        "coverage": pytest.approx(2 / 3),
        "accuracy: royal": 1.0,
        "accuracy: fruit": 0.0,
    }
    with pytest.raises(UsageError, match="judged by accuracy"):
        task().evaluate(records, "spearman")


def test_questions_are_judged_as_gensim_judges_them(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gensim's own
        models = pytest.importorskip("gensim.models")
    random = np.random.default_rng(3)
    words = [f"w{number}" for number in range(30)]
    vectors = random.normal(size=(30, 4)).astype(np.float32)
    theirs = models.KeyedVectors(4)
    theirs.add_vectors(words, vectors)
    pairs = [
        (random.choice(words), random.choice([*words, "xyz"]), f"{random.random():.3f}") for _ in range(60)
    ]
    pairs_file, questions_file = tmp_path / "pairs.tsv", tmp_path / "questions.txt"
    pairs_file.write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    questions = [random.choice(words, 4, replace=False).tolist() for _ in range(300)]
    questions_file.write_text(": all\n" + "".join(" ".join(question) + "\n" for question in questions))
    write_vectors(tmp_path / "v.txt", words, vectors, "word2vec")
    import_run(tmp_path / "v.txt", tmp_path / "run")
    run = regard.load(tmp_path / "run")
    _, rank, unknown = theirs.evaluate_word_pairs(str(pairs_file))
    alike = run.evaluate(run.spec.data.records(str(pairs_file)))
    assert alike.value == pytest.approx(rank.statistic)
    assert alike.scores["coverage"] == pytest.approx(1 - unknown / 100)
    accuracy, _ = theirs.evaluate_word_analogies(str(questions_file))
    assert 0 < accuracy < 1
    assert run.evaluate(run.spec.data.records(str(questions_file))).value == pytest.approx(accuracy)
