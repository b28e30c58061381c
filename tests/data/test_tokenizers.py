"""Five units: exact ways back, the same file each time, and dropout that is a function of its key."""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import tokenizers as library
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import RunError, UsageError
from regard.data.byte_pairs import merge_steps
from regard.data.tokenizers import Marks, Tokenizer, TokenizerSpec
from regard.data.units import LEARNED_MARKS, SPECIALS, WORD_BY_WORD, Unit

UNITS = ("bpe", "byte_bpe", "wordpiece", "word", "character")
CORPUS = [
    "tabs\tand\nlines",
    "Two young, white males are outside near many bushes.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    'A man (in green) holds a guitar -- isn\'t it? "Yes!" #1 50% a+b=c ...',
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest",
    "café naïve façade Ünïcödé 3rd 1979 21st of May 2031",
    "find . -name '*.py' | xargs grep -n \"x y\" && echo done",
] * 3
LETTERS = sorted({character for text in CORPUS for character in text})


def trained(unit: str, **fields: object) -> Tokenizer:
    size = {"byte_bpe": 400, "character": 200}.get(unit, 260)
    return Tokenizer.train(TokenizerSpec.from_dict({"unit": unit, "size": size} | fields), CORPUS)


TOKENIZERS = {unit: trained(unit) for unit in UNITS}
seen_text = st.text(st.sampled_from([*LETTERS, *" \t\n "]), max_size=40)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


spaced_text = st.text(st.sampled_from("aeßä.,-1 \t\n\r\x1c\x85\u00a0\u2028\u3000▁İΣ#</unk>"), max_size=30)


def one_space(text: str) -> str:
    return " ".join(text.replace("▁", " ").split())


@pytest.mark.parametrize("unit", UNITS)
@given(text=seen_text)
def test_decoding_gives_the_text_back(unit: str, text: str) -> None:
    tokenizer = TOKENIZERS[unit]
    ids = tokenizer.encode(text)
    if tokenizer.unknown not in ids:
        exact = unit in ("byte_bpe", "character")
        assert tokenizer.decode(ids) == (text if exact else one_space(text))


@pytest.mark.parametrize("unit", ["bpe", "wordpiece", "character"])
@given(text=seen_text)
def test_seen_characters_are_never_unknown(unit: str, text: str) -> None:
    assert TOKENIZERS[unit].unknown not in TOKENIZERS[unit].encode(text)


@given(text=any_text)
def test_nothing_is_unknown_in_bytes(text: str) -> None:
    tokenizer = TOKENIZERS["byte_bpe"]
    ids = tokenizer.encode(text)
    assert min(ids, default=4) >= 4
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("unit", UNITS)
@given(texts=st.lists(any_text, max_size=5))
def test_many_at_once_equal_one_at_a_time_equal_the_library(unit: str, texts: list[str]) -> None:
    tokenizer = TOKENIZERS[unit]
    alone = library.Tokenizer.from_str(tokenizer.to_json())
    alone.encode_special_tokens = True
    expected = [alone.encode(text).ids for text in texts]
    assert tokenizer.encode_many(texts) == [tokenizer.encode(text) for text in texts] == expected


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("split_digits", [False, True])
@pytest.mark.parametrize("unit", WORD_BY_WORD)
def test_words_are_cut_and_written_as_the_library_cuts_and_writes_whole_texts(
    unit: str, split_digits: bool, lowercase: bool
) -> None:
    tokenizer = trained(unit, split_digits=split_digits, lowercase=lowercase, hides=True)
    whole, blank = tokenizer.to_library(), tokenizer.vocabulary().get("▁", tokenizer.unknown)
    whole.encode_special_tokens = True

    @given(
        texts=st.lists(spaced_text | any_text, max_size=4),
        ids=st.lists(st.integers(0, tokenizer.size + 2) | st.just(blank), max_size=12),
    )
    def check(texts: list[str], ids: list[int]) -> None:
        cut = [whole.encode(text, add_special_tokens=False).ids for text in texts]
        assert tokenizer.encode_many(texts) == cut
        for row in (ids, *cut):
            assert tokenizer.decode(row) == whole.decode(row, skip_special_tokens=True)

    check()


@pytest.mark.parametrize("unit", UNITS)
@given(text=any_text)
def test_every_piece_has_a_place(unit: str, text: str) -> None:
    tokenizer = TOKENIZERS[unit]
    spans = tokenizer.offsets(text)
    assert len(spans) == len(tokenizer.encode(text)) == len(tokenizer.pieces(tokenizer.encode(text)))
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


def test_places_of_pieces_are_those_in_the_given_text() -> None:
    text = "  A man,  holds "
    spans = [text[start:end] for start, end in TOKENIZERS["word"].offsets(text)]
    assert spans == ["A", "man", ",", "holds"]
    assert TOKENIZERS["word"].pieces(TOKENIZERS["word"].encode(text)) == spans
    bpe = TOKENIZERS["bpe"]
    assert "".join(text[a:b] for a, b in bpe.offsets(text)) == "Aman,holds"
    assert [p.lstrip("▁") for p in bpe.pieces(bpe.encode(text))] == [text[a:b] for a, b in bpe.offsets(text)]


@pytest.mark.parametrize("unit", UNITS)
def test_special_tokens_stand_where_promised_and_cannot_be_typed(unit: str) -> None:
    tokenizer = TOKENIZERS[unit]
    assert [
        tokenizer.pieces([i])[0] for i in (tokenizer.pad, tokenizer.unknown, tokenizer.begin, tokenizer.end)
    ] == [*SPECIALS]
    typed = tokenizer.encode("a </s> <s> <pad> b")
    assert not {tokenizer.pad, tokenizer.begin, tokenizer.end} & set(typed)
    word = tokenizer.encode("low")
    assert tokenizer.decode([tokenizer.begin, *word, tokenizer.end, tokenizer.pad]) == "low"


def test_what_is_unknown_stays_visible() -> None:
    assert TOKENIZERS["bpe"].decode(TOKENIZERS["bpe"].encode("low Ж, er")) == "low <unk>, er"
    assert TOKENIZERS["word"].decode(TOKENIZERS["word"].encode("low unheard, man")) == "low <unk>, man"
    assert TOKENIZERS["wordpiece"].decode(TOKENIZERS["wordpiece"].encode("low Жж man")) == "low <unk> man"
    assert TOKENIZERS["character"].encode("aЖ")[1] == LEARNED_MARKS.unknown


@pytest.mark.parametrize("unit", ["word", "blank", "wordpiece", "bpe"])
def test_a_text_that_writes_the_mark_of_the_unknown_itself_keeps_its_spaces(unit: Unit) -> None:
    """As the Penn Treebank does."""
    tokenizer = Tokenizer.train(TokenizerSpec(unit=unit, size=60), ["the <unk> and the <unk> <unk>"])
    assert tokenizer.decode(tokenizer.encode("the <unk> <unk> and")) == "the <unk> <unk> and"


@pytest.mark.parametrize("unit", UNITS)
def test_the_vocabulary_is_no_larger_than_asked_for(unit: str) -> None:
    tokenizer = TOKENIZERS[unit]
    assert 5 < tokenizer.size <= tokenizer.spec.size
    small = trained("word", size=20)
    assert small.size == 20
    assert trained("character", size=20).size == 20
    assert trained("bpe", size=30).size == 30  # too small for every character: the rare ones go


def test_min_count_keeps_rare_words_and_characters_out() -> None:
    rare = Tokenizer.train(TokenizerSpec(unit="word", min_count=2), ["a b b", "c c"])
    assert rare.size == 4 + 2
    letters = Tokenizer.train(TokenizerSpec(unit="character", min_count=2), ["abb", "cc"])
    assert letters.encode("abc") == [LEARNED_MARKS.unknown, 4, 5]
    merged = Tokenizer.train(TokenizerSpec(unit="bpe", min_count=3), ["abab", "abz"])
    assert merged.encode("z")[-1] == LEARNED_MARKS.unknown
    assert merged.merges() == [("a", "b")]


def test_capitals_are_folded_on_request() -> None:
    for unit in UNITS:
        tokenizer = trained(unit, lowercase=True)
        assert tokenizer.encode("LOW Men") == tokenizer.encode("low men")
        assert tokenizer.decode(tokenizer.encode("LOW, Low")) in ("low, low", "<unk>, low")


@pytest.mark.parametrize("unit", UNITS)
def test_digits_split_on_request(unit: str) -> None:
    tokenizer = Tokenizer.train(
        TokenizerSpec(unit=unit, size=400, split_digits=True), ["in 1979 , 1979 x3rd 1979 3 9 7 1"] * 9
    )
    text = "in 1979, 3rd"
    pieces = tokenizer.pieces(tokenizer.encode(text))
    assert [piece.strip("▁") for piece in pieces].count("9") == 2
    assert not any(len([c for c in piece if c.isdigit()]) > 1 for piece in pieces)
    assert tokenizer.decode(tokenizer.encode("in 1979 x3")) == "in 1979 x3"


@pytest.mark.parametrize("unit", UNITS)
def test_the_same_texts_give_the_same_file(unit: str) -> None:
    first = trained(unit).to_json()
    assert all(trained(unit).to_json() == first for _ in range(4))
    assert (
        Tokenizer.train(TokenizerSpec.from_json(TOKENIZERS[unit].spec.to_json()), iter(CORPUS)).to_json()
        == first
    )


def test_another_process_learns_the_same_file() -> None:
    program = (
        "import sys, json, hashlib\n"
        "from regard.data.tokenizers import Tokenizer, TokenizerSpec\n"
        "for unit, texts in json.loads(sys.stdin.read()):\n"
        "    made = Tokenizer.train(TokenizerSpec(unit=unit, size=280), texts).to_json()\n"
        "    print(hashlib.sha256(made.encode()).hexdigest())\n"
    )
    asked = json.dumps([(unit, CORPUS) for unit in UNITS])
    done = subprocess.run(
        [sys.executable, "-c", program], input=asked, text=True, capture_output=True, check=True
    )
    here = [Tokenizer.train(TokenizerSpec(unit=unit, size=280), CORPUS).to_json() for unit in UNITS]
    assert done.stdout.split() == [hashlib.sha256(made.encode()).hexdigest() for made in here]


def test_training_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for unit in UNITS:
        trained(unit)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("unit", UNITS)
def test_saved_and_loaded_it_is_the_same(unit: str, tmp_path: Path) -> None:
    tokenizer = TOKENIZERS[unit]
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.spec == tokenizer.spec
    assert loaded.to_json() == tokenizer.to_json()
    assert loaded.encode(CORPUS[0]) == tokenizer.encode(CORPUS[0])
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    plain = library.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert plain.encode(CORPUS[0]).ids == tokenizer.encode(CORPUS[0])
    assert plain.get_vocab_size() == tokenizer.size


def test_merges_are_those_of_the_librarys_own_file(tmp_path: Path) -> None:
    TOKENIZERS["bpe"].save(tmp_path / "tokenizer.json")
    library.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).model.save(str(tmp_path))
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8").splitlines()
    pairs = [tuple(line.split(" ")) for line in lines if not line.startswith("#")]
    assert TOKENIZERS["bpe"].merges() == pairs
    assert TOKENIZERS["word"].merges() == []


def test_the_library_learns_the_merges_that_are_learned_by_hand() -> None:
    """Where no two pairs are equally frequent, there is only one answer."""
    words = {"abcd": 50, "abc": 29, "xbcd": 13, "ad": 7, "cdab": 5}
    texts = [word for word, number in words.items() for _ in range(number)]
    tokenizer = Tokenizer.train(TokenizerSpec(unit="bpe", size=4 + 6 + 3), texts)
    marked = {f"▁{word}": number for word, number in words.items()}
    by_hand = [step.pair for step in merge_steps(marked, 8, end="") if "" not in step.pair]
    assert tokenizer.merges() == by_hand[:3] == [("b", "c"), ("▁", "a"), ("▁a", "bc")]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"model": {}}', '{"model": {"regard": {"unit": "x"}}}']
)
def test_a_damaged_file_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=r"tokenizer\.json"):
        Tokenizer.load(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = trained("word", size=12).to_json()
    path = tmp_path / "tokenizer.json"
    for length in range(0, len(whole), 37):
        path.write_text(whole[:length], encoding="utf-8")
        with pytest.raises(RunError, match=r"tokenizer\.json"):
            Tokenizer.load(path)
    with pytest.raises(RunError, match="No such file"):
        Tokenizer.load(tmp_path / "none.json")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match="not UTF-8 at byte 0"):
        Tokenizer.load(path)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"unit": "word", "dropout": 0.1}, r"dropout=0\.1 .*unit='word'"),
        ({"unit": "byte_bpe", "size": 200}, r"size=200, .*at least 260"),
        ({"size": 3}, r"size: got 3: .*greater than or equal to 5"),
        ({"unit": "sentence"}, r"unit: got 'sentence'"),
        ({"dropout": 1.5}, r"dropout: got 1\.5"),
    ],
)
def test_impossible_specs_are_refused_with_both_values(fields: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        TokenizerSpec.from_dict(fields)


@pytest.mark.parametrize("unit", ["bpe", "byte_bpe"])
@given(text=any_text, epoch=st.integers(0, 9))
def test_dropout_zero_is_plain_encoding(unit: str, text: str, epoch: int) -> None:
    assert TOKENIZERS[unit].encode_with_dropout(text, 1, epoch, 2) == TOKENIZERS[unit].encode(text)


@pytest.mark.parametrize("unit", ["bpe", "byte_bpe"])
@given(text=seen_text)
def test_dropout_one_gives_characters(unit: str, text: str) -> None:
    tokenizer = DROPPING[unit, 1.0]
    pieces = tokenizer.pieces(tokenizer.encode_with_dropout(text, 1, 1, 1))
    if unit == "bpe":
        assert "".join(pieces) == ("▁" + one_space(text).replace(" ", "▁") if one_space(text) else "")
    assert all(len(piece) == 1 for piece in pieces)


@pytest.mark.parametrize("unit", ["bpe", "byte_bpe"])
@given(text=seen_text, line=st.integers(0, 10**6))
def test_dropout_never_changes_the_text(unit: str, text: str, line: int) -> None:
    tokenizer = DROPPING[unit, 0.3]
    assert tokenizer.decode(tokenizer.encode_with_dropout(text, 7, 1, line)) == tokenizer.decode(
        tokenizer.encode(text)
    )


def test_dropout_depends_on_seed_epoch_and_line_and_on_nothing_else() -> None:
    keys = [(seed, epoch, line) for seed in (0, 1) for epoch in (0, 1) for line in range(30)]
    texts = {key: CORPUS[1 + key[2] % 6] for key in keys}
    tokenizer = trained("bpe", dropout=0.3)
    once = {key: tokenizer.encode_with_dropout(texts[key], *key) for key in keys}
    random.Random(0).shuffle(keys)
    again = trained("bpe", dropout=0.3)
    assert once == {key: again.encode_with_dropout(texts[key], *key) for key in keys}
    for left, right in [((0, 0, 4), (1, 0, 4)), ((0, 0, 4), (0, 1, 4)), ((0, 0, 4), (0, 0, 10))]:
        assert texts[left] == texts[right]
        assert once[left] != once[right]


DROPPING = {
    (unit, share): trained(unit, dropout=share) for unit in ("bpe", "byte_bpe") for share in (0.3, 1.0)
}


@pytest.mark.parametrize("unit", ["word", "blank"])
def test_a_vocabulary_of_words_grows_by_the_most_frequent_and_keeps_its_numbers(unit: str) -> None:
    old = Tokenizer.train(TokenizerSpec(unit=unit, size=50), ["to be or not to be"])
    texts = ["to see or to hear", "see the sea", "the sea , the sky"]
    grown = old.grown(texts, old.size + 2)
    assert grown.size == old.size + 2
    assert {word: grown.vocabulary()[word] for word in old.vocabulary()} == old.vocabulary()
    assert grown.pieces(range(old.size, grown.size)) == ["the", "sea"]
    assert grown.decode(grown.encode("to be the sea")) == "to be the sea"
    assert grown.marks == old.marks
    again = Tokenizer.from_json(grown.to_json()).grown(texts, grown.size)
    assert again.vocabulary() == grown.vocabulary()
    whole = old.grown(texts, 1000)
    assert whole.grown(texts, 1000).vocabulary() == whole.vocabulary()
    assert old.grown(texts, 3) is old
    assert not any(whole.unknown in ids for ids in whole.encode_many(texts))


def test_only_vocabularies_of_words_grow() -> None:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="bpe", size=50), ["to be or not to be"])
    with pytest.raises(UsageError, match="unit='bpe'"):
        tokenizer.grown(["more"], 100)


def test_tokens_of_a_task_stand_behind_the_last_and_mean_no_text() -> None:
    learned = Tokenizer.train(TokenizerSpec(unit="word", size=50), ["a b <new>"])
    more = learned.with_tokens(("<one>", "<two>"))
    assert [more.number_of(name) for name in ("<one>", "<two>")] == [learned.size, learned.size + 1]
    assert more.size == learned.size + 2
    assert more.with_tokens(("<two>", "<one>")) is more
    assert more.encode("a <one>") == learned.encode("a <one>")  # typed in a text it is text
    again = Tokenizer.from_json(more.to_json())
    assert (again.size, again.number_of("<two>")) == (more.size, learned.size + 1)
    with pytest.raises(RunError, match="has no token '<two>'"):
        learned.number_of("<two>")


def test_spare_rows_of_an_imported_vocabulary_are_left_alone() -> None:
    inner = Tokenizer.train(TokenizerSpec(unit="word", size=50), ["a b"]).to_library()
    imported = Tokenizer.taken_over(inner, Marks(0, 1, 2, 3), size=inner.get_vocab_size() + 5)
    more = imported.with_tokens(("<one>",))
    assert more.number_of("<one>") == imported.size
    assert more.size == imported.size + 1
