"""Marian (Junczys-Dowmunt et al. 2018), as its translators are published (OPUS-MT; Tiedemann 2020)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from torch import Tensor

from regard.core.errors import DataError
from regard.data.tokenizers import Marks, Tokenizer
from regard.interop.bart import Bart
from regard.interop.encoder_decoder import asked
from regard.interop.family import Offered, Vocabulary
from regard.interop.hugging_face_files import CONFIG, read_json
from regard.interop.hugging_face_tokenizers import TOKENIZER, VOCABULARY
from regard.interop.renaming import Change, Renamed
from regard.interop.sentencepiece_files import read_pieces, tokenizer_of
from regard.parts.positions import PositionSpec, SinusoidalSpec

_SOURCE_PIECES, _TARGET_PIECES = "source.spm", "target.spm"
_LANGUAGE = re.compile(r">>.+<<$")
"""A token that says which of several languages is wanted."""


class Marian(Bart):
    """Its sinusoids have all sines before all cosines, ours in turns: the coordinates of the whole model are
    put in the other order, which changes nothing."""

    title, architecture, model_type = "Marian", "MarianMTModel", "marian"
    prefix = "model.encoder.embed_positions."
    normed = False
    made_anew = re.compile(r"(\.version|embed_positions\.weight)$")

    def vocabulary(self, offered: Offered) -> Vocabulary:
        """As its makers publish it: one numbering, and a file of pieces for each side."""
        if (offered.folder / TOKENIZER).exists() or not (offered.folder / _SOURCE_PIECES).exists():
            return super().vocabulary(offered)
        read, written = (
            side_of(offered.folder, name, offered.config) for name in (_SOURCE_PIECES, _TARGET_PIECES)
        )
        for one in (read, written):
            one.marks = one.marks._replace(begin=self.begin(offered, one.pad))
        return Vocabulary(written, opened=False, reads=read)

    def positions(self, config: Mapping[str, Any], where: Path) -> PositionSpec:
        return SinusoidalSpec()

    def position_rows(self, side: str) -> list[Renamed]:
        return []

    def along(self, axis: int) -> Change | None:
        def theirs(tensor: Tensor) -> Tensor:
            return tensor.index_select(axis, sines_first(tensor.shape[axis]).to(tensor.device))

        def ours(tensor: Tensor) -> Tensor:
            return tensor.index_select(axis, sines_first(tensor.shape[axis]).argsort().to(tensor.device))

        return Change(ours, theirs)


def side_of(folder: Path, name: str, config: Mapping[str, Any]) -> Tokenizer:
    """How one side's texts are cut and numbered. Their own program may also unify punctuation first
    (sacremoses, where it is installed); here texts are taken as they are."""
    place = folder / VOCABULARY
    ids = read_json(place)
    if not ids or not all(isinstance(number, int) and number >= 0 for number in ids.values()):
        raise DataError("expected a number for each piece", file=place)
    if missing := [mark for mark in ("</s>", "<unk>", "<pad>") if mark not in ids]:
        raise DataError(f"has no {missing[0]}", file=place)
    size = asked(config, "vocab_size", max(ids.values()) + 1, int, folder / CONFIG)
    if (last := max(ids.values())) >= size:
        raise DataError(f"has ids up to {last}, but config.json gives the model {size} rows", file=place)
    inner = tokenizer_of(read_pieces(folder / name), ids, "<unk>")
    languages = sorted((piece for piece in ids if _LANGUAGE.match(piece)), key=ids.__getitem__)
    inner.add_special_tokens([AddedToken(mark, special=True) for mark in ("</s>", "<pad>")])
    # Unlike those, they are meant when they stand in a text.
    inner.add_tokens([AddedToken(language, normalized=False) for language in languages])
    marks = Marks(pad=ids["<pad>"], unknown=ids["<unk>"], begin=ids["<pad>"], end=ids["</s>"])
    return Tokenizer.taken_over(inner, marks, size)


def sines_first(width: int) -> Tensor:
    """Where each of their coordinates is among ours."""
    return torch.cat((torch.arange(0, width, 2), torch.arange(1, width, 2)))
