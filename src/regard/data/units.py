"""The six units of text: how text is normalised, cut into words, learned, and put together again.

A seventh, ``imported``, is whatever a vocabulary that was learned elsewhere does.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import tokenizers as library
from pydantic import Field, model_validator
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.core.errors import UsageError
from regard.core.spec import Spec

Unit: TypeAlias = Literal["bpe", "byte_bpe", "wordpiece", "word", "blank", "character", "imported"]

SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
UNKNOWN = "<unk>"
HIDDEN = "<mask>"
SPACE = "▁"
CONTINUED = "##"
MERGING = ("bpe", "byte_bpe")
WORD_BY_WORD = ("bpe", "wordpiece", "word", "blank")
"""What stands between two blanks is cut, and each of its tokens written, the same way in every text."""
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())


class Marks(NamedTuple):
    """The ids of the tokens that stand for no text; in vocabularies from elsewhere some may be the same."""

    pad: int
    unknown: int
    begin: int
    end: int
    hidden: int | None = None
    """Stands where a token was hidden, for a reader that guesses it; None: nothing can be."""


LEARNED_MARKS = Marks(*range(len(SPECIALS)))
"""Where ``learn`` puts them, without one for what is hidden."""


class TokenizerSpec(Spec):
    """What the pieces of a text are, and how many different ones there may be."""

    unit: Unit = "bpe"
    """bpe: merged characters; byte_bpe: merged bytes, nothing is unknown; wordpiece: longest known parts of
    words; word: words and punctuation marks; blank: whatever stands between blanks, for text that is
    tokenized already; character: every character, spaces too; imported: taken over from elsewhere with its
    own rules, and not to be learned anew."""
    size: int = Field(default=8000, ge=5, le=2_000_000)
    """Most entries of the vocabulary, the four special tokens counted; if imported, exactly so many ids."""
    lowercase: bool = False
    """Fold capital letters; then decoding gives small letters only."""
    split_digits: bool = False
    """Every digit is a piece of its own, so that numbers are read and written digit by digit."""
    dropout: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of merges left out at random in training (Provilkov et al. 2020); bpe and byte_bpe only."""
    min_count: int = Field(default=1, ge=1)
    """Words, characters and merges seen less often are not taken into the vocabulary."""
    hides: bool = False
    """Keep a token for what is hidden from a reader that is to guess it."""

    @model_validator(mode="after")
    def _possible(self) -> "TokenizerSpec":
        if self.unit == "imported":
            asked = [name for name, usual in _LEARNING.items() if getattr(self, name) != usual]
            if asked:
                raise ValueError(
                    f"{asked[0]}={getattr(self, asked[0])} is a matter of learning a vocabulary, but "
                    "unit='imported' is taken over as it is"
                )
            return self
        if self.dropout and self.unit not in MERGING:
            raise ValueError(f"dropout={self.dropout} needs merges to drop, but unit={self.unit!r} has none")
        least = len(self.specials) + len(BYTES)
        if self.unit == "byte_bpe" and self.size < least:
            raise ValueError(f"size={self.size}, but unit='byte_bpe' needs at least {least} for every byte")
        return self

    @property
    def specials(self) -> tuple[str, ...]:
        return (*SPECIALS, HIDDEN) if self.hides else SPECIALS

    @property
    def marks(self) -> Marks:
        """Where ``learn`` puts them."""
        return LEARNED_MARKS._replace(hidden=len(SPECIALS) if self.hides else None)


_LEARNING = {"lowercase": False, "split_digits": False, "dropout": 0.0, "min_count": 1, "hides": False}


def learn(spec: TokenizerSpec, texts: Iterable[str]) -> library.Tokenizer:
    """The library's tokenizer for these texts; the same texts give the same one, whatever the threads do."""
    if spec.unit == "imported":
        raise UsageError(
            "unit='imported' is a vocabulary learned elsewhere, which cannot be learned anew: name the run "
            "that has it with --from or --vocabulary, or choose another unit"
        )
    if iter(texts) is texts:
        texts = list(texts)  # characters are counted before merges are learned: two passes
    if spec.unit == "character":
        vocabulary = [*spec.specials, *_frequent_characters(spec, texts)[: spec.size - len(spec.specials)]]
        model = {"vocab": {token: number for number, token in enumerate(vocabulary)}}
    else:
        learning = _frame(spec, _empty_model(spec))
        learning.train_from_iterator(texts, _trainer(spec, texts))
        model = json.loads(learning.to_str())["model"]
    # Made anew from what was learned, free of what was said only to the trainer.
    learned = _frame(spec, _model(spec, model))
    # Decoding leaves special tokens out. The unknown is not among them: something was there.
    marks = [AddedToken(token, special=True, normalized=False) for token in spec.specials if token != UNKNOWN]
    learned.add_special_tokens(marks)
    return learned


def given_words(words: Sequence[str]) -> tuple[TokenizerSpec, library.Tokenizer]:
    """A vocabulary of exactly these words, as they stand between blanks, after the special tokens."""
    spec = TokenizerSpec(unit="blank", size=len(SPECIALS) + max(1, len(words)))
    marked = (SPACE + word.replace(" ", SPACE) for word in words)
    vocabulary = {token: number for number, token in enumerate((*SPECIALS, *marked))}
    inner = _frame(spec, models.WordLevel(vocab=vocabulary, unk_token=UNKNOWN))
    inner.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t in SPECIALS if t != UNKNOWN]
    )
    return spec, inner


def _frame(spec: TokenizerSpec, model: models.Model) -> library.Tokenizer:
    """Everything around the model."""
    inner = library.Tokenizer(model)
    lower = [normalizers.Lowercase()] if spec.lowercase else []
    if spec.unit == "character":
        inner.normalizer = normalizers.Sequence(lower)
        inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        inner.decoder = decoders.Fuse()
    elif spec.unit == "byte_bpe":
        # A space in front of the first word makes it the same word as everywhere else.
        inner.normalizer = normalizers.Sequence([*lower, normalizers.Prepend(" ")])
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
        digits = pre_tokenizers.Split(Regex(r" ?\p{N}"), "isolated")
        inner.pre_tokenizer = (
            pre_tokenizers.Sequence([digits, byte_level]) if spec.split_digits else byte_level
        )
        inner.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    else:
        one_space = [normalizers.Replace(Regex(rf"[\s{SPACE}]+"), " "), normalizers.Strip()]
        mark = [normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]
        inner.normalizer = normalizers.Sequence([*lower, *one_space, *mark])
        inner.pre_tokenizer = _marked_words(spec)
        inner.decoder = _joined_words(spec)
    return inner


def _marked_words(spec: TokenizerSpec) -> pre_tokenizers.PreTokenizer:
    """Words and punctuation, each with the space mark in front of it if there is one."""
    # Runs of punctuation may merge ("...", "--"); where nothing merges, each mark is a word of its own.
    if spec.unit == "blank":
        return pre_tokenizers.Split(Regex(rf"{SPACE}?[^{SPACE}]+"), "isolated")
    several = "+" if spec.unit == "bpe" else ""
    words = rf"{SPACE}?[^{SPACE}\p{{P}}\p{{S}}]+|{SPACE}?[\p{{P}}\p{{S}}&&[^{SPACE}]]{several}"
    if spec.split_digits:
        words = rf"{SPACE}?\p{{N}}|" + words.replace(r"\p{S}]+", r"\p{S}\p{N}]+")
    return pre_tokenizers.Split(Regex(words), "isolated")


def _joined_words(spec: TokenizerSpec) -> decoders.Decoder:
    steps = []
    if spec.unit in (
        "word",
        "blank",
        "wordpiece",
    ):  # a whole word is unknown, and the space before it with it
        steps.append(decoders.Replace(Regex(f"^{UNKNOWN}$"), SPACE + UNKNOWN))
    if spec.unit == "wordpiece":
        steps.append(decoders.Replace(Regex(f"^{CONTINUED}(?=.)"), ""))
    return decoders.Sequence(
        [*steps, decoders.Replace(SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )


def _empty_model(spec: TokenizerSpec) -> models.Model:
    if spec.unit in MERGING:
        return models.BPE(unk_token=UNKNOWN)
    return (
        models.WordPiece(unk_token=UNKNOWN)
        if spec.unit == "wordpiece"
        else models.WordLevel(unk_token=UNKNOWN)
    )


def _model(spec: TokenizerSpec, learned: dict[str, Any]) -> models.Model:
    if spec.unit in MERGING:
        merges = [(left, right) for left, right in learned["merges"]]
        return models.BPE(vocab=learned["vocab"], merges=merges, unk_token=UNKNOWN)
    if spec.unit == "wordpiece":
        return models.WordPiece(vocab=learned["vocab"], unk_token=UNKNOWN, max_input_chars_per_word=1000)
    return models.WordLevel(vocab=learned["vocab"], unk_token=UNKNOWN)


def _trainer(spec: TokenizerSpec, texts: Iterable[str]) -> trainers.Trainer:
    common: dict[str, Any] = {
        "vocab_size": spec.size,
        "min_frequency": spec.min_count,
        "show_progress": False,
    }
    specials = list(spec.specials)
    if spec.unit in ("word", "blank"):
        return trainers.WordLevelTrainer(special_tokens=specials, **common)
    if spec.unit == "byte_bpe":
        return trainers.BpeTrainer(special_tokens=specials, initial_alphabet=BYTES, **common)
    # Left to itself the library may cut equally rare characters in hash order: choose the alphabet here.
    room = (spec.size - len(spec.specials)) * 3 // 4
    alphabet = _alphabet(spec, texts, room if spec.unit == "bpe" else room // 2)
    common |= {"initial_alphabet": alphabet, "limit_alphabet": len(alphabet)}
    if spec.unit == "bpe":
        return trainers.BpeTrainer(special_tokens=specials, **common)
    # It numbers "##x" in hash order, and breaks ties by number: number them first, by calling them special.
    continued = [CONTINUED + character for character in alphabet if character != SPACE]
    return trainers.WordPieceTrainer(special_tokens=specials + continued, **common)


def _alphabet(spec: TokenizerSpec, texts: Iterable[str], most: int) -> list[str]:
    """The space mark and the most frequent other characters, ``most`` in all."""
    visible = [c for c in _frequent_characters(spec, texts) if not c.isspace() and c != SPACE]
    return sorted([SPACE, *visible[: max(1, most - 1)]])


def _frequent_characters(spec: TokenizerSpec, texts: Iterable[str]) -> list[str]:
    """Characters seen at least ``min_count`` times, the most frequent first; ties by code point."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.lower() if spec.lowercase else text)
    kept = [character for character, count in counts.items() if count >= spec.min_count]
    return sorted(kept, key=lambda character: (-counts[character], character))


def bytes_of(token: str) -> bytes:
    """The bytes a byte-level token stands for."""
    return bytes(_BYTE_OF[character] for character in token)


def readable_bytes(token: str) -> str:
    """As text, a space as ``▁``; bytes that are only a part of a character as their numbers."""
    found = bytes_of(token)
    try:
        return found.decode().replace(" ", SPACE)
    except UnicodeDecodeError:
        return "".join(f"⟨{byte:02x}⟩" for byte in found)


def _byte_table() -> dict[str, int]:
    """GPT-2's table: printable bytes stand for themselves, the others for characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_table()
