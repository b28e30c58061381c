"""Vocabularies in SentencePiece's own files (Kudo and Richardson 2018), as older folders keep them.

Such a file is a protocol buffer of which four things matter here: the pieces with their scores, whether they
were learned as a unigram model, and how a text is normalised. They are read field by field, which takes less
than the library that would read all of it.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import tokenizers as library
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from regard.core.errors import DataError, UsageError

_BLANK = "▁"
_NEVER = -1e4
"""Score of a piece that is another side's: worse than any way to spell it with one's own."""
# Numbers of fields and kinds in sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE, _SCORE, _KIND = 1, 2, 3
_MODEL_TYPE, _UNIGRAM = 3, 1
_CHARACTERS, _DUMMY_PREFIX, _EXTRA_BLANKS = 2, 3, 4
_CONTROL, _BYTE = 3, 6


class Pieces(NamedTuple):
    """What a file says."""

    scores: dict[str, float]
    """Of every piece that stands for text or for the unknown, in the order of the file."""
    characters: bytes
    """Which characters become which; empty: none."""
    dummy_prefix: bool
    """A blank is put in front of every text."""
    extra_blanks_go: bool


def read_pieces(path: Path) -> Pieces:
    try:
        return _pieces(path.read_bytes())
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from None
    except (ValueError, IndexError, struct.error):
        raise DataError("damaged or not a SentencePiece file", file=path) from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def tokenizer_of(pieces: Pieces, ids: Mapping[str, int], unknown: str) -> library.Tokenizer:
    """Texts cut as ``pieces`` say, numbered as ``ids`` do; pieces that only ``ids`` knows are never chosen
    where others will do."""
    size = max(ids.values()) + 1
    rows = [(f"<spare {number}>", _NEVER) for number in range(size)]
    for piece, number in ids.items():
        rows[number] = (piece, pieces.scores.get(piece, _NEVER))
    inner = library.Tokenizer(models.Unigram(rows, ids[unknown], byte_fallback=False))
    steps: list[normalizers.Normalizer] = []
    if pieces.characters:
        steps.append(normalizers.Precompiled(pieces.characters))
    if pieces.extra_blanks_go:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    inner.normalizer = normalizers.Sequence(steps)
    scheme = "always" if pieces.dummy_prefix else "never"
    inner.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_BLANK, prepend_scheme=scheme)
    inner.decoder = decoders.Metaspace(replacement=_BLANK, prepend_scheme=scheme)
    return inner


def _pieces(content: bytes) -> Pieces:
    scores: dict[str, float] = {}
    characters, dummy_prefix, extra_blanks_go, unigram = b"", True, True, True
    for field, value in _fields(content):
        if field == _PIECES:
            said = dict(_fields(_bytes(value)))
            kind = said.get(_KIND, 1)
            if kind == _BYTE:
                raise UsageError("spells unknown characters in bytes, which regard does not read from it")
            if kind != _CONTROL:
                score = struct.unpack("<f", _bytes(said.get(_SCORE, b"\0\0\0\0")))[0]
                scores[_bytes(said[_PIECE]).decode()] = score
        elif field == _TRAINER:
            unigram = dict(_fields(_bytes(value))).get(_MODEL_TYPE, _UNIGRAM) == _UNIGRAM
        elif field == _NORMALIZER:
            said = dict(_fields(_bytes(value)))
            characters = _bytes(said.get(_CHARACTERS, b""))
            dummy_prefix, extra_blanks_go = (
                bool(said.get(name, 1)) for name in (_DUMMY_PREFIX, _EXTRA_BLANKS)
            )
    if not scores:
        raise ValueError("no pieces")
    if not unigram:
        raise UsageError("its pieces are no unigram model, the only kind that regard reads from such a file")
    return Pieces(scores, characters, dummy_prefix, extra_blanks_go)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes were expected")
    return value


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one message by their numbers: whole numbers, and everything else as bytes."""
    at = 0
    while at < len(content):
        tag, at = _number(content, at)
        field, form = tag >> 3, tag & 7
        if form == 0:
            value, at = _number(content, at)
            yield field, value
            continue
        if form == 2:
            size, at = _number(content, at)
        elif form in (1, 5):
            size = 8 if form == 1 else 4
        else:
            raise ValueError(f"a form of field that nobody writes: {form}")
        if at + size > len(content):
            raise ValueError("cut off")
        yield field, content[at : at + size]
        at += size


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = content[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number without end")
