"""From text to token ids and back: one spec, six units, the ``tokenizers`` library underneath.

Spaces are kept as the mark ``▁`` in front of words, so that decoding is exact: what comes back is the text
with its runs of white space (and any ``▁``) as single spaces; units ``byte_bpe`` and ``character`` give back
every character. Ids 0 to 3 are padding, unknown, begin and end in every vocabulary that is learned here. One
that was learned elsewhere keeps its own ids and rules: whatever its file says is done.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import AddedToken

from regard.core.errors import RunError, UsageError
from regard.data.byte_pairs import Cut, DroppingWord, Merge, cutting
from regard.data.randomness import Drops
from regard.data.remembered import Remembered
from regard.data.store import write_atomically
from regard.data.units import (
    MERGING,
    SPACE,
    WORD_BY_WORD,
    Marks,
    TokenizerSpec,
    bytes_of,
    given_words,
    learn,
    readable_bytes,
)

__all__ = ["Marks", "Tokenizer", "TokenizerSpec"]

_SPEC, _MARKS = "regard", "regard_marks"
_WORDS_REMEMBERED = 1 << 17
_TEXTS_REMEMBERED = 1 << 16


class Tokenizer:
    """A trained vocabulary. Encoding adds no special tokens; decoding leaves out all but the unknown."""

    def __init__(self, spec: TokenizerSpec, inner: library.Tokenizer, marks: Marks | None = None) -> None:
        self.spec, self.marks = spec, spec.marks if marks is None else marks
        self._inner = inner
        # A text that happens to contain "</s>" is text: it must never end a sentence.
        inner.encode_special_tokens = True
        self._remembered = Remembered(self._cut_many) if spec.unit in WORD_BY_WORD else None
        self._words: dict[str, DroppingWord] = {}
        self._split = lru_cache(maxsize=_TEXTS_REMEMBERED)(self._split_text)

    @classmethod
    def train(cls, spec: TokenizerSpec, texts: Iterable[str]) -> "Tokenizer":
        """Learn a vocabulary; the same texts give the same file."""
        return cls(spec, learn(spec, texts))

    @classmethod
    def of_words(cls, words: Sequence[str]) -> "Tokenizer":
        """Exactly these words, as they stand between blanks."""
        return cls(*given_words(words))

    @classmethod
    def taken_over(cls, inner: library.Tokenizer, marks: Marks, size: int) -> "Tokenizer":
        """A vocabulary learned elsewhere; ``size`` may be more than it has, where a model has spare rows."""
        # How long a row may be is a matter of batches; a file that remembers it would cut or fill texts.
        inner.no_truncation()
        inner.no_padding()
        return cls(TokenizerSpec(unit="imported", size=size), inner, marks)

    def grown(self, texts: Iterable[str], size: int) -> "Tokenizer":
        """The same with words of ``texts`` added at its end, the most frequent first, until it has ``size``.

        To grow again on the same texts changes nothing.
        """
        if self.spec.unit not in ("word", "blank"):
            raise UsageError(
                f"only a vocabulary of words can grow, this one is of unit={self.spec.unit!r}: grows=false"
            )
        if size <= self.size:
            return self
        found = learn(self.spec.model_copy(update={"size": 2_000_000}), texts).get_vocab()
        own = self._inner.get_vocab()
        more = sorted((word for word in found if word not in own), key=found.__getitem__)[: size - self.size]
        values = json.loads(self._inner.to_str())
        values["model"]["vocab"] |= {word: self.size + place for place, word in enumerate(more)}
        spec = self.spec.model_copy(update={"size": max(self.spec.size, self.size + len(more))})
        return Tokenizer(spec, library.Tokenizer.from_str(json.dumps(values)), self.marks)

    @property
    def pad(self) -> int:
        return self.marks.pad

    @property
    def unknown(self) -> int:
        return self.marks.unknown

    @property
    def begin(self) -> int:
        return self.marks.begin

    @property
    def end(self) -> int:
        return self.marks.end

    @property
    def size(self) -> int:
        return self.spec.size if self.spec.unit == "imported" else int(self._inner.get_vocab_size())

    @cached_property
    def doubles_space(self) -> bool:
        """Whether it puts a space in front of every text, even of one that begins with a space."""
        alone = self.encode("a")
        return self.encode("a a")[len(alone) :] == alone != self.encode(" a")

    def with_tokens(self, names: Sequence[str]) -> "Tokenizer":
        """The same vocabulary with tokens behind its last that stand for no text; itself if it has them."""
        missing = [name for name in names if self._inner.token_to_id(name) is None]
        if not missing:
            return self
        inner = self.to_library()
        # Spare rows of an imported model are somebody else's.
        spare = self.size - inner.get_vocab_size()
        inner.add_special_tokens([AddedToken(f"<spare {n}>", special=True) for n in range(spare)])
        inner.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in missing])
        imported = self.spec.unit == "imported"
        spec = self.spec.model_copy(update={"size": inner.get_vocab_size()}) if imported else self.spec
        return Tokenizer(spec, inner, self.marks)

    def number_of(self, name: str) -> int:
        """The id of a token that stands for no text."""
        number = self._inner.token_to_id(name)
        if number is None:
            raise RunError(f"the vocabulary has no token {name!r}, which the layout of rows needs")
        return int(number)

    def encode(self, text: str) -> list[int]:
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        if self.spec.unit == "character":
            return [self._encode_characters(text) for text in texts]
        return (self._cut_many if self._remembered is None else self._remembered.encode_many)(texts)

    def encode_more(self, text: str) -> list[int]:
        """A text that goes on from another: the space between them is the one it begins with."""
        return self.encode(self.going_on(text))

    def going_on(self, text: str) -> str:
        """What to encode so that ``text`` follows on what was encoded before."""
        return text.removeprefix(" ") if self.doubles_space else text

    def encode_with_dropout(self, text: str, seed: int, epoch: int, line: int) -> list[int]:
        """Encode with ``spec.dropout``; a pure function of its arguments, whatever was asked before."""
        drops = Drops(self.spec.dropout, seed, epoch, line)
        merges = self._merge_table
        ids: list[int] = []
        for word in self._split(text):
            outcome = word.undisturbed
            if drops.gap < outcome.draws:
                ids += word.merge(merges, drops)
            else:  # the same as merging, without the cost of a call: most words meet no drop
                drops.gap -= outcome.draws
                ids += outcome.pieces
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        if self._remembered is None:
            return self._joined(list(ids))
        # Every token has its own way to be written, and the whole no blank in front.
        return "".join(map(self._spelled.__getitem__, ids)).removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One readable string a token; ``▁`` stands for a space in it."""
        known = self._readings
        return [known[token] for token in map(int, ids)]

    def spellings(self, word: str) -> list[list[int]]:
        """A word's tokens at the start of a text and inside one, which may differ."""
        alone = self.encode(word)
        inside = self.encode(f"x {word}")[len(self.encode("x")) :]
        return [ids for ids in ([alone] if alone == inside else [alone, inside]) if ids]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where in ``text`` each piece of ``encode(text)`` stands, spaces around it left out.

        An imported vocabulary says itself what is left out.
        """
        spans = self._inner.encode(text, add_special_tokens=False).offsets
        if self.spec.unit in ("character", "imported"):
            return list(spans)
        return [_trimmed(text, start, end) for start, end in spans]

    def vocabulary(self) -> dict[str, int]:
        """Every piece and its id."""
        return dict(self._inner.get_vocab())

    def merges(self) -> list[tuple[str, str]]:
        """The pairs that are merged, in the order in which they were learned; none for other units."""
        if self.spec.unit not in MERGING and self._model.get("type") != "BPE":
            return []
        return [(left, right) for left, right in self._model["merges"]]

    def cuts(self, text: str) -> list[list[Cut]]:
        """How each word of ``text`` is cut: merge by merge where pieces were learned so, else at once."""
        ranks = {pair: rank for rank, pair in enumerate(self.merges())}
        inner = self._inner
        normal = inner.normalizer.normalize_str(text) if inner.normalizer is not None else text
        if inner.pre_tokenizer is None:
            words = [normal]
        else:
            words = [word for word, _ in inner.pre_tokenizer.pre_tokenize_str(normal)]
        if ranks:
            return [
                [self._seen(cut) for cut in cutting(tuple(word), ranks)] for word in words if word.strip()
            ]
        pieces = [tuple(token.value for token in inner.model.tokenize(word)) for word in words]
        return [
            [Cut(tuple(word)), Cut(found)] if len(word) > 1 else [Cut(found)]
            for word, found in zip(words, pieces, strict=True)
        ]

    def _seen(self, cut: Cut) -> Cut:
        """Bytes as people can read them."""
        if not self._byte_level:
            return cut
        symbols = tuple(readable_bytes(symbol) for symbol in cut.symbols)
        pair = None if cut.pair is None else (readable_bytes(cut.pair[0]), readable_bytes(cut.pair[1]))
        return Cut(symbols, pair, cut.rank)

    def to_json(self) -> str:
        values = json.loads(self._inner.to_str())
        # The library refuses unknown fields at the top but not inside the model: there our spec is safe.
        values["model"][_SPEC] = self.spec.to_dict()
        if self.marks != self.spec.marks:
            values["model"][_MARKS] = self.marks._asdict()
        return json.dumps(values, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str, where: str | Path = "tokenizer.json") -> "Tokenizer":
        try:
            model = json.loads(text)["model"]
            spec = TokenizerSpec.from_dict(model[_SPEC])
            marks = Marks(**model[_MARKS]) if _MARKS in model else None
            return cls(spec, library.Tokenizer.from_str(text), marks)
        except UsageError as error:
            raise RunError(f"{where}: {error}") from None
        except (KeyError, TypeError):
            raise RunError(f"{where}: not a tokenizer that regard wrote") from None
        except Exception as error:  # the library raises nothing more precise
            raise RunError(f"{where}: damaged or not a tokenizer file: {error}") from None

    def to_library(self) -> library.Tokenizer:
        """A copy for other programs, in which nothing of ours is left."""
        return library.Tokenizer.from_str(self._inner.to_str())

    def save(self, path: str | Path) -> None:
        """Write; a reader sees the old file or the new one, never a part."""
        write_atomically(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise RunError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise RunError(f"{path}: damaged: not UTF-8 at byte {error.start}") from None
        return cls.from_json(text, path)

    @cached_property
    def _model(self) -> dict[str, Any]:
        model: dict[str, Any] = json.loads(self._inner.to_str())["model"]
        return model

    @cached_property
    def _merge_table(self) -> dict[tuple[int, int], Merge]:
        ids = self._model["vocab"]
        return {
            (ids[left], ids[right]): Merge(rank, ids[left + right])
            for rank, (left, right) in enumerate(self.merges())
        }

    def _cut_many(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def _joined(self, ids: list[int]) -> str:
        return str(self._inner.decode(ids, skip_special_tokens=True))

    @cached_property
    def _spelled(self) -> "_Readings":
        """How each token is written inside a text: as it is behind another one like it."""
        return _Readings(lambda number: self._joined([number] * 2)[len(self._joined([number])) :])

    def _encode_characters(self, text: str) -> list[int]:
        # One look-up a character: the library's splitting costs thirty times as much.
        ids, unknown = self._model["vocab"], self.unknown
        if self.spec.lowercase:
            text = self._inner.normalizer.normalize_str(text)
        return [ids.get(character, unknown) for character in text]

    def _split_text(self, text: str) -> tuple[DroppingWord, ...]:
        normal = self._inner.normalizer.normalize_str(text)
        return tuple(self._word(word) for word, _ in self._inner.pre_tokenizer.pre_tokenize_str(normal))

    def _word(self, text: str) -> DroppingWord:
        word = self._words.get(text)
        if word is None:
            if len(self._words) >= _WORDS_REMEMBERED:
                self._words.clear()
            ids = self._model["vocab"]
            characters = [ids.get(character, self.unknown) for character in text]
            word = self._words[text] = DroppingWord(characters, self._merge_table)
        return word

    @cached_property
    def _added(self) -> dict[int, str]:
        """Tokens that stand beside the vocabulary, marks among them: they are written as they are."""
        return {number: str(token) for number, token in self._inner.get_added_tokens_decoder().items()}

    @cached_property
    def _byte_level(self) -> bool:
        decoder = self._inner.decoder
        return decoder is not None and b"ByteLevel" in decoder.__getstate__()

    @cached_property
    def _readings(self) -> "_Readings":
        return _Readings(self._readable)

    def _readable(self, number: int) -> str:
        token = self._added.get(number) or self._inner.id_to_token(number)
        if token is None:
            return "\ufffd"  # a spare row of an imported model
        if number in self._added:
            return str(token)
        if self._byte_level:
            token = bytes_of(token).decode("utf-8", errors="replace")
        if self.spec.unit in ("word", "blank") and len(token) > 1:
            token = token.removeprefix(SPACE)
        return str(token.replace(" ", SPACE))


class _Readings(dict[int, str]):
    """What tokens look like, found out once for each."""

    def __init__(self, find_out: Callable[[int], str]) -> None:
        super().__init__()
        self._find_out = find_out

    def __missing__(self, number: int) -> str:
        self[number] = found = self._find_out(number)
        return found


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
