"""Vocabularies of Hugging Face folders: read with their own rules, written so that theirs come back."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers as library
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors

from regard.core.errors import DataError, UsageError
from regard.data.tokenizers import Marks, Tokenizer
from regard.interop.family import Vocabulary
from regard.interop.hugging_face_files import GENERATION, read_json_if_there, to_json

TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
VOCABULARY, MERGES = "vocab.json", "merges.txt"
_ROLES = ("bos_token", "eos_token", "unk_token", "pad_token")
_END_OF_TEXT = "<|endoftext|>"
_NO_LIMIT = 10**30


class Frame(NamedTuple):
    """Special tokens that are put around every text."""

    front: tuple[int, ...]
    back: tuple[int, ...]


def read_tokenizer(folder: Path, config: Mapping[str, Any]) -> Vocabulary:
    """With the special tokens that its files name, or else the ids in ``config``."""
    tokenizer, frame, where = read_framed(folder, config)
    return Vocabulary(tokenizer, _opened(frame, tokenizer, where))


def read_framed(folder: Path, config: Mapping[str, Any]) -> tuple[Tokenizer, Frame, Path]:
    """Also what it puts around texts, and the file to blame."""
    said = said_of_tokens(folder)
    inner, where = _inner(folder, said)
    ids = inner.get_vocab(with_added_tokens=True)
    names = {role: name for role in _ROLES if (name := content_of(said.get(role))) in ids}
    known = set(inner.get_added_tokens_decoder())
    # Who wraps a vocabulary says what is special in it; its own file need not. The unknown is left as it is
    # there: in what is decoded it shows that something was.
    marks = [name for role, name in names.items() if role != "unk_token" and ids[name] not in known]
    inner.add_special_tokens([AddedToken(name, special=True) for name in marks])
    most = max(ids.values(), default=-1) + 1
    size = config.get("vocab_size", most)
    if not isinstance(size, int) or most > size:
        raise DataError(
            f"has ids up to {most - 1}, but config.json gives the model {size!r} rows (vocab_size)",
            file=where,
        )
    found = _marks({role: ids[name] for role, name in names.items()}, folder, config, size, where)
    tokenizer = Tokenizer.taken_over(inner, found, size)
    return tokenizer, _frame(inner, found, said), where


def said_of_tokens(folder: Path) -> dict[str, Any]:
    older = read_json_if_there(folder / "special_tokens_map.json")
    return older | read_json_if_there(folder / TOKENIZER_CONFIG)


def _inner(folder: Path, said: Mapping[str, Any]) -> tuple[library.Tokenizer, Path]:
    """The library's tokenizer, and the file to blame."""
    whole = (folder / TOKENIZER).exists()
    if not whole and (missing := [name for name in (VOCABULARY, MERGES) if not (folder / name).exists()]):
        raise DataError(f"missing; there is no {TOKENIZER} either", file=folder / missing[0])
    path = folder / (TOKENIZER if whole else VOCABULARY)
    try:
        if whole:
            return library.Tokenizer.from_str(path.read_text(encoding="utf-8")), path
        return byte_pairs(folder, said), path
    except DataError:
        raise
    except Exception as error:  # the library raises nothing more precise
        raise DataError(f"damaged or not a tokenizer file: {error}", file=path) from None


def byte_pairs(folder: Path, said: Mapping[str, Any]) -> library.Tokenizer:
    """The older form of a byte-level vocabulary: pieces and merges in two files, the rules in nobody's."""
    inner = library.Tokenizer(models.BPE.from_file(str(folder / VOCABULARY), str(folder / MERGES)))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(said.get("add_prefix_space")))
    inner.decoder = decoders.ByteLevel()
    if inner.token_to_id(_END_OF_TEXT) is not None:
        inner.add_special_tokens([_END_OF_TEXT])
    add_numbered(inner, folder)
    return inner


def add_numbered(inner: library.Tokenizer, folder: Path) -> None:
    """Tokens that were added to an older vocabulary later, each under its number."""
    added = folder / "added_tokens.json"
    for token, number in sorted(read_json_if_there(added).items(), key=lambda item: int(item[1])):
        inner.add_tokens([token])
        if inner.token_to_id(token) != number:
            raise DataError(
                f"{token!r} has number {number}, but {inner.token_to_id(token)} is next", file=added
            )


def content_of(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, Mapping) else token
    return content if isinstance(content, str) else None


def _marks(
    named: Mapping[str, int], folder: Path, config: Mapping[str, Any], size: int, where: Path
) -> Marks:
    generation = read_json_if_there(folder / GENERATION)

    def number(role: str) -> int | None:
        if role in named:
            return named[role]
        for values in (generation, config):
            value = values.get(f"{role}_id")
            first = value[0] if isinstance(value, list) and value else value
            # A config that was never adapted to its vocabulary still has GPT-2's own number.
            if isinstance(first, int) and 0 <= first < size:
                return first
        return None

    end = number("eos_token")
    if end is None:
        raise DataError(
            f"no token ends a text: neither does {TOKENIZER_CONFIG} name an eos_token of this vocabulary "
            "nor config.json number one",
            file=where,
        )
    begin, unknown, pad = (
        end if found is None else found for found in map(number, ("bos_token", "unk_token", "pad_token"))
    )
    return Marks(pad=pad, unknown=unknown, begin=begin, end=end)


def _frame(inner: library.Tokenizer, marks: Marks, said: Mapping[str, Any]) -> Frame:
    if "add_bos_token" in said or "add_eos_token" in said:  # then what the file itself adds does not count
        front = (marks.begin,) if said.get("add_bos_token") else ()
        return Frame(front, (marks.end,) if said.get("add_eos_token") else ())
    plain = list(inner.encode("a", add_special_tokens=False).ids)
    around = list(inner.encode("a", add_special_tokens=True).ids)
    begin = next(at for at in range(len(around) + 1) if around[at : at + len(plain)] == plain)
    return Frame(tuple(around[:begin]), tuple(around[begin + len(plain) :]))


def _opened(frame: Frame, tokenizer: Tokenizer, where: Path) -> bool:
    """Whether texts get an end token in front; anything else around them is nothing we could do."""
    if frame == ((), ()):
        return False
    if frame == ((tokenizer.end,), ()):
        return True
    around = [*frame.front, *tokenizer.encode("a"), *frame.back]
    shown = tokenizer.to_library().decode(around, skip_special_tokens=False)
    raise UsageError(
        f"{where}: puts special tokens around every text ({shown!r} for 'a'); regard knows only an end token "
        "in front"
    )


def write_tokenizer(tokenizer: Tokenizer, opened: bool, longest: int | None) -> dict[str, bytes]:
    """As language models have it: every text begins where another ended."""
    return write_framed(tokenizer, Frame((tokenizer.end,) if opened else (), ()), tokenizer.end, longest)


def write_framed(tokenizer: Tokenizer, frame: Frame, begin: int, longest: int | None) -> dict[str, bytes]:
    """``tokenizer.json`` and what AutoTokenizer must be told beside it."""
    inner = tokenizer.to_library()
    names = {number: token for token, number in inner.get_vocab(with_added_tokens=True).items()}
    end = names.get(tokenizer.end)
    if end is None:
        raise UsageError(f"the token that ends a text ({tokenizer.end}) has no name in this vocabulary")
    _put_around(inner, frame, names)
    others = {"unk_token": tokenizer.unknown, "pad_token": tokenizer.pad}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": names.get(begin, end),
        "eos_token": end,
        **{
            role: names[number]
            for role, number in others.items()
            if number != tokenizer.end and number in names
        },
        "model_max_length": longest or _NO_LIMIT,
        "clean_up_tokenization_spaces": False,
    }
    if tokenizer.spec.unit != "imported":
        # Here "</s>" in a text has always been text; where a vocabulary comes from, its own custom holds.
        config["split_special_tokens"] = True
    return {TOKENIZER: inner.to_str(pretty=True).encode(), TOKENIZER_CONFIG: to_json(config)}


def _put_around(inner: library.Tokenizer, frame: Frame, names: Mapping[int, str]) -> None:
    if list(inner.encode("", add_special_tokens=True).ids) == [*frame.front, *frame.back]:
        return
    front, back = ([names[number] for number in side] for side in frame)
    single = " ".join([*front, "$A", *back])
    template = processors.TemplateProcessing(
        single=single,
        pair=f"{single} {single.replace('$A', '$B')}",
        special_tokens=[(names[number], number) for number in {*frame.front, *frame.back}],
    )
    steps: Iterable[Any] = (template,) if inner.post_processor is None else (inner.post_processor, template)
    inner.post_processor = processors.Sequence(list(steps))
