"""What stands for what is found in pairs alone, and what is on a shortlist follows from it."""

from collections import defaultdict

import numpy as np
import pytest

from regard.core.errors import RunError
from regard.data import word_translations
from regard.data.pair_batches import PairStores
from regard.data.shortlists import Shortlist, learn_shortlist
from regard.data.store import TokenStore
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.data.word_translations import Translations, learn_translations

WORDS, SIZE = 12, 20


def told_in_another_order(pairs: int, seed: int = 0) -> tuple[list[list[int]], list[list[int]]]:
    """Target token t stands for source token t - 7, anywhere in its sentence."""
    draw = np.random.default_rng(seed)
    sources = [draw.integers(0, WORDS, draw.integers(1, 6)) for _ in range(pairs)]
    return [row.tolist() for row in sources], [(draw.permutation(row) + 7).tolist() for row in sources]


def stores(sources: list[list[int]], targets: list[list[int]]) -> tuple[TokenStore, TokenStore]:
    return TokenStore.of(sources, SIZE), TokenStore.of(targets, SIZE)


def couple_by_couple(
    sources: list[list[int]], targets: list[list[int]], rounds: int
) -> dict[tuple[int, int], float]:
    """The same in dictionaries."""
    share: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            for written in target if source else ():
                among = [(read, written) for read in [*source, -1]]
                whole = sum(share[couple] for couple in among)
                for couple in among:
                    counts[couple] += share[couple] / whole
        of = defaultdict(float)
        for (read, _), count in counts.items():
            of[read] += count
        share = {couple: count / of[couple[0]] for couple, count in counts.items()}  # type: ignore[assignment]
    return {couple: value for couple, value in share.items() if couple[0] >= 0}


def as_dictionary(found: Translations) -> dict[tuple[int, int], float]:
    return {(int(s), int(t)): float(p) for s, t, p in zip(*found, strict=True)}


@pytest.mark.parametrize("block", [1 << 22, 50])
def test_shares_are_those_of_the_plain_way(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_translations, "_BLOCK_COUPLES", block)
    sources, targets = told_in_another_order(60)
    sources, targets = [*sources, [], [3]], [*targets, [8], []]
    found = as_dictionary(learn_translations(*stores(sources, targets), SIZE, SIZE))
    assert found == pytest.approx(couple_by_couple(sources, targets, word_translations._ROUNDS))


def test_a_sample_of_many_pairs_tells_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets = told_in_another_order(2000)
    whole = learn_translations(*stores(sources, targets), SIZE, SIZE)
    monkeypatch.setattr(word_translations, "_MOST_COUPLES", 3000)
    some = learn_translations(*stores(sources, targets), SIZE, SIZE)
    assert some.share.tolist() != whole.share.tolist()
    for found in (as_dictionary(whole), as_dictionary(some)):
        for word in range(WORDS):
            likeliest = max((t for s, t in found if s == word), key=lambda t, w=word: found[w, t])
            assert likeliest == word + 7


def vocabulary(words: str) -> Tokenizer:
    return Tokenizer.train(TokenizerSpec(unit="word", size=50), [words])


def pairs_of(source: Tokenizer, target: Tokenizer, *pairs: tuple[str, str]) -> PairStores:
    sides = (
        TokenStore.of(tokenizer.encode_many([pair[side] for pair in pairs]), tokenizer.size)
        for side, tokenizer in enumerate((source, target))
    )
    return PairStores(*sides, (source.marks, target.marks))


@pytest.fixture
def german() -> Tokenizer:
    return vocabulary("hund katze der die schläft rennt ! Rom")


@pytest.fixture
def english() -> Tokenizer:
    return vocabulary("dog cat the sleeps runs ! Rom Paris")


PAIRS = [
    ("the dog sleeps !", "der hund schläft !"),
    ("the cat sleeps !", "die katze schläft !"),
    ("the dog runs !", "der hund rennt !"),
    ("the cat runs !", "die katze rennt !"),
]


def test_the_best_and_the_common_are_on_it_once_and_the_unknown_is_copied(
    english: Tokenizer, german: Tokenizer
) -> None:
    made = learn_shortlist(pairs_of(english, german, *PAIRS), english, german, best=2, common=1)

    def listed(word: str) -> list[str]:
        return german.pieces(made.for_token(english.encode(word)[0]).tolist())

    assert german.pieces(made.common.tolist()) == german.pieces(german.encode("!"))
    assert set(listed("dog")) == set(german.pieces(german.encode("der hund")))
    assert set(listed("cat")) == set(german.pieces(german.encode("die katze")))
    assert listed("Rom") == german.pieces(german.encode("Rom"))
    assert listed("Paris") == []
    assert not set(made.common.tolist()) & set(made.beside.tolist())


def test_it_comes_back_as_it_was_and_not_to_other_vocabularies(english: Tokenizer, german: Tokenizer) -> None:
    made = learn_shortlist(pairs_of(english, german, *PAIRS), english, german)
    again = Shortlist.from_tensors(made.tensors(), english, german)
    for one, other in zip(made, again, strict=True):
        assert one.tolist() == other.tolist()
    small = vocabulary("hund der")
    for vocabularies in ((small, german), (english, small)):
        with pytest.raises(RunError, match="other vocabularies"):
            Shortlist.from_tensors(made.tensors(), *vocabularies)
    with pytest.raises(RunError, match="other vocabularies"):
        Shortlist.from_tensors({"common": made.tensors()["common"]}, english, german)
