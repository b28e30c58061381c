"""Vocabularies of readers (BERT and its kin): texts stand between two marks, and one mark hides a token."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from regard.core.errors import DataError, UsageError
from regard.data.tokenizers import Marks, Tokenizer
from regard.interop.family import Vocabulary
from regard.interop.hugging_face_files import to_json
from regard.interop.hugging_face_tokenizers import (
    MERGES,
    TOKENIZER,
    TOKENIZER_CONFIG,
    VOCABULARY,
    add_numbered,
    byte_pairs,
    content_of,
    said_of_tokens,
)

PIECES, SENTENCE_PIECES = "vocab.txt", "spiece.model"
_ROLES = {
    "pad_token": ("[PAD]", "<pad>"),
    "unk_token": ("[UNK]", "<unk>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "mask_token": ("[MASK]", "<mask>"),
}
"""What they are called, and the names that are usual."""
_LONGEST_WORD = 100
"""Characters beyond which a word is unknown, as everywhere since BERT."""
_BRACKETED = re.compile(r"\[.*\]|<.*>")


def read_reader_tokenizer(folder: Path, config: Mapping[str, Any]) -> Vocabulary:
    said = said_of_tokens(folder)
    inner, where = _inner(folder, said)
    ids = inner.get_vocab(with_added_tokens=True)
    names = {role: name for role, usual in _ROLES.items() if (name := _name(said.get(role), usual, ids))}
    known = set(inner.get_added_tokens_decoder())
    marks = [name for role, name in names.items() if role != "unk_token" and ids[name] not in known]
    inner.add_special_tokens([AddedToken(name, special=True) for name in marks])
    most, size = max(ids.values(), default=-1) + 1, config.get("vocab_size")
    size = most if size is None else size
    if not isinstance(size, int) or most > size:
        raise DataError(
            f"has ids up to {most - 1}, but config.json gives the model {size!r} rows (vocab_size)",
            file=where,
        )
    for role in ("cls_token", "sep_token"):
        if role not in names:
            raise DataError(
                f"texts of a reader stand between two marks, but no {role} is named in {TOKENIZER_CONFIG}, "
                f"nor is {' or '.join(_ROLES[role])} in the vocabulary",
                file=where,
            )
    number = {role: ids[name] for role, name in names.items()}
    end = number["sep_token"]
    found = Marks(
        pad=number.get("pad_token", end),
        unknown=number.get("unk_token", end),
        begin=number["cls_token"],
        end=end,
        hidden=number.get("mask_token"),
    )
    return Vocabulary(Tokenizer.taken_over(inner, found, size), opened=True)


def _name(said: Any, usual: tuple[str, ...], ids: Mapping[str, int]) -> str | None:
    return next((name for name in (content_of(said), *usual) if name in ids), None)


def _inner(folder: Path, said: Mapping[str, Any]) -> tuple[library.Tokenizer, Path]:
    """The library's tokenizer, and the file to blame."""
    path = next(
        (path for name in (TOKENIZER, PIECES, VOCABULARY) if (path := folder / name).exists()),
        folder / TOKENIZER,
    )
    try:
        if path.name == TOKENIZER and path.exists():
            return library.Tokenizer.from_str(path.read_text(encoding="utf-8")), path
        if path.name == PIECES:
            return _word_pieces(path, said), path
        if path.name == VOCABULARY and (folder / MERGES).exists():
            return byte_pairs(folder, said), path
    except DataError:
        raise
    except Exception as error:  # the library raises nothing more precise
        raise DataError(f"damaged or not a tokenizer file: {error}", file=path) from None
    if (folder / SENTENCE_PIECES).exists():
        raise UsageError(
            f"{folder / SENTENCE_PIECES}: regard does not read this form. Load the tokenizer with "
            f"transformers and save it again with save_pretrained: that writes {TOKENIZER}"
        )
    missing = MERGES if path.name == VOCABULARY else TOKENIZER
    raise DataError(f"missing; there is no {PIECES} either", file=folder / missing)


def _word_pieces(path: Path, said: Mapping[str, Any]) -> library.Tokenizer:
    """The older form of BERT's vocabulary: a piece a line; rules are in another file, or as usual."""
    pieces = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    vocabulary = {piece.rstrip("\r"): number for number, piece in enumerate(pieces)}
    unknown = _name(said.get("unk_token"), _ROLES["unk_token"], vocabulary)
    if unknown is None:
        raise DataError("has no piece for what is unknown ([UNK])", file=path)
    inner = library.Tokenizer(
        models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=_LONGEST_WORD)
    )
    lowercase = said.get("do_lower_case")
    if lowercase is None:  # a vocabulary with capital letters was not made of folded text
        lowercase = not any(
            piece != piece.lower() and not _BRACKETED.fullmatch(piece) for piece in vocabulary
        )
    inner.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(said.get("tokenize_chinese_chars", True)),
        strip_accents=said.get("strip_accents"),
        lowercase=bool(lowercase),
    )
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece(prefix="##")
    usual = [name for role, names in _ROLES.items() if (name := _name(said.get(role), names, vocabulary))]
    inner.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in usual])
    add_numbered(inner, path.parent)
    return inner


def write_reader_tokenizer(
    tokenizer: Tokenizer, longest: int | None, segments: bool, doubled: bool
) -> dict[str, bytes]:
    """``tokenizer.json`` and what AutoTokenizer must be told beside it; ``doubled``: two marks in a pair."""
    inner, marks = tokenizer.to_library(), tokenizer.marks
    names = {number: token for token, number in inner.get_vocab(with_added_tokens=True).items()}
    begin, end = names[marks.begin], names[marks.end]
    between = f"{end}:0 {end}:0" if doubled else f"{end}:0"
    second = 1 if segments else 0
    inner.post_processor = processors.TemplateProcessing(
        single=f"{begin}:0 $A:0 {end}:0",
        pair=f"{begin}:0 $A:0 {between} $B:{second} {end}:{second}",
        special_tokens=[(begin, marks.begin), (end, marks.end)],
    )
    values = json.loads(inner.to_str())
    own = tokenizer.spec.unit != "imported"
    for token in values["added_tokens"]:
        if own and token["id"] == marks.hidden:
            # Here a gap takes the spaces around it, and what follows begins as after a space.
            token |= {"lstrip": True, "rstrip": True}
    roles = {
        "cls_token": marks.begin,
        "sep_token": marks.end,
        "bos_token": marks.begin,
        "eos_token": marks.end,
        "unk_token": marks.unknown,
        "pad_token": marks.pad,
        "mask_token": marks.hidden,
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{role: names[number] for role, number in roles.items() if number is not None and number in names},
        "model_max_length": longest or 10**30,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"],
    }
    whole = json.dumps(values, ensure_ascii=False, indent=2).encode()
    return {TOKENIZER: whole, TOKENIZER_CONFIG: to_json(config)}
