"""Words and those around them: who looks at whom, who is left out, what is drawn."""

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.data.word_questions import read_questions
from regard.data.word_windows import PreparedWords, WordWindowsSpec, kept_share
from regard.data.words import canonical, words_of

TEXTS = ["a b c d e f g", "h i", "j", "k l m n"]


def prepared(texts: list[str] = TEXTS, seed: int = 1, **fields: object) -> PreparedWords:
    values: dict[str, object] = {"sample": 0.0, "radius": 2, "group": 3, "noise": 4, "window": 50, "rows": 1}
    spec = WordWindowsSpec(
        tokenizer=TokenizerSpec(unit="word", size=100), documents="line", **(values | fields)
    )
    return spec.prepare(texts, texts, seed, None, None)


def test_everyone_looks_at_neighbours_of_the_same_document_only() -> None:
    data = prepared()
    names = {number: word for word, number in words_of(data.lexicon["text"]).items()}
    place = {word: (number, at) for number, text in enumerate(TEXTS) for at, word in enumerate(text.split())}
    seen: dict[int, set[int]] = {}
    for epoch in range(20):
        (batch,) = data.epoch(epoch)
        for group in range(len(batch.words)):
            for own in range(3):
                near = batch.around[group, own : own + 5][batch.near[group, own]].tolist()
                if not near:
                    continue
                number, at = place[names[int(batch.words[group, own])]]
                length = len(TEXTS[number].split())
                others = [place[names[word]] for word in near]
                assert all(document == number for document, _ in others)
                reach = max(abs(other - at) for _, other in others)
                # All within reach, on both sides, and never the word itself.
                expected = [
                    other
                    for other in range(at - reach, at + reach + 1)
                    if 0 <= other < length and other != at
                ]
                assert sorted(other for _, other in others) == expected
                seen.setdefault(length, set()).add(reach)
    assert seen[7] == {1, 2}, "how far a word looks is drawn anew"
    assert 1 not in seen, "a word alone looks at nothing"


def test_every_word_is_there_once() -> None:
    data = prepared()
    (batch,) = data.epoch(0)
    words = batch.words[batch.near.any(-1)].tolist()
    names = {number: word for word, number in words_of(data.lexicon["text"]).items()}
    assert sorted(names[word] for word in words) == sorted(" ".join(TEXTS).replace("j ", "").split())


def test_batches_are_functions_of_seed_epoch_and_index() -> None:
    one, same, other = prepared(sample=1e-2), prepared(sample=1e-2), prepared(sample=1e-2, seed=2)

    def drawn(data: PreparedWords, epoch: int) -> list[object]:
        return [part.tolist() for batch in data.epoch(epoch) for part in batch[:3]]

    assert drawn(one, 3) == drawn(same, 3)
    assert drawn(one, 3) != drawn(one, 4)
    assert drawn(one, 3) != drawn(other, 3)


def test_frequent_words_are_left_out_as_often_as_eq_5_of_the_program_says() -> None:
    counts = np.array([0, 1000, 100, 1])
    share = counts / counts.sum()
    kept = kept_share(counts, 0.01)
    assert kept[0] == 0
    assert kept[1] == pytest.approx(np.sqrt(0.01 / share[1]) + 0.01 / share[1])
    assert kept[3] == 1.0
    assert kept_share(counts, 0.0).tolist() == [0, 1, 1, 1]


def test_left_out_words_bring_the_others_together() -> None:
    texts = ["the x the y the the z"] * 400
    data = prepared(texts, sample=0.02, rows=4)
    number = words_of(data.lexicon["text"])
    words = np.concatenate([batch.words[batch.near.any(-1)].numpy() for batch in data.epoch(0)])
    shares = np.array([4 / 7, 1 / 7, 1 / 7, 1 / 7])
    left = shares * (np.sqrt(0.02 / shares) + 0.02 / shares)
    assert np.mean(words == number["the"]) == pytest.approx(left[0] / left.sum(), abs=0.04)


def test_noise_is_drawn_by_frequency_to_the_power() -> None:
    texts = ["a a a a a a a a a a a a a a a a b"] * 8
    data = prepared(texts, noise=500)
    number = words_of(data.lexicon["text"])
    (batch,) = prepared(texts, noise=500, rows=99).epoch(0)
    share = float((batch.noise == number["b"]).float().mean())
    assert share == pytest.approx(1 / (1 + 16**0.75), abs=0.02)
    assert not (batch.noise < 4).any(), "marks are no words"


def test_a_word_is_one_with_and_without_a_space() -> None:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="word", size=50), ['say "yes" yes yes', "no"])
    pieces = tokenizer.vocabulary()
    assert {"yes", "▁yes"} <= set(pieces)
    assert words_of(tokenizer)["yes"] == pieces["▁yes"]
    same = canonical(tokenizer)
    assert same[pieces["yes"]] == same[pieces["▁yes"]] == pieces["▁yes"]


def test_pieces_that_go_on_with_a_word_are_none() -> None:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="bpe", size=30), ["low lower lowest"] * 5)
    words = words_of(tokenizer)
    assert "low" in words
    assert all(tokenizer.vocabulary()["▁" + word] == number for word, number in words.items())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# remark\nold\tnew\t1.5\nsun\tmoon\t7\n", [("old", "new", "1.5"), ("sun", "moon", "7")]),
        ("Word 1,Word 2,Human (mean)\nlove,sex,6.77\n", [("love", "sex", "6.77")]),
        (
            "word1\tword2\tPOS\tSimLex999\tconc(w1)\tSD(SimLex)\nold\tnew\tA\t1.58\t2.7\t0.4\n",
            [("old", "new", "1.58")],
        ),
        ("cat dog 3\n", [("cat", "dog", "3")]),
        (": capitals\nOslo Norway Rome Italy\n", [("capitals", "Oslo", "Norway", "Rome", "Italy")]),
    ],
    ids=["tabs", "csv", "simlex", "blanks", "analogies"],
)
def test_questions_are_read_as_people_keep_them(tmp_path, text: str, found: list[tuple[str, ...]]) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "questions.txt"
    path.write_text(text)
    assert read_questions(str(path)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\t1\nc\td\tmany\n", r"q.tsv:2: expected a score, found 'many'"),
        ("a\tb\t1\nc\td\n", r"q.tsv:2: expected two words and a score, found 2 values"),
        (": x\na b c\n", r"q.tsv:2: expected four words of an analogy, found 3"),
        ("# nothing\n", r"q.tsv: there is no question here"),
    ],
)
def test_bad_questions_are_refused_with_their_line(tmp_path, text: str, message: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "q.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_questions(str(path))
