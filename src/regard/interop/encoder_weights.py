"""Weights of BERT and its kin as folders hold them, settled so that each has one name and one place."""

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.interop.dialects import Dialect
from regard.recipes.system import SystemSpec

TYPES = "type_vocab_size"
_OLD_NORM = {"gamma": "weight", "beta": "bias"}
_BUFFER = re.compile(r"embeddings\.(position_ids|token_type_ids)$|encoder\.embed_positions\.weight$")


def plainly_named(dialect: Dialect, stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without what says nothing, under names as they are today; of a body saved alone, too."""
    heads = [*dialect.guessing[:4], *dialect.guessing.twice, dialect.relation or ""]
    alone = not any(name.startswith(dialect.prefix) for name in stored)
    found = {}
    for name, tensor in stored.items():
        if _BUFFER.search(name):
            continue
        *way, last = name.split(".")
        name = ".".join([*way, _OLD_NORM.get(last, last)])
        if alone and not name.startswith(tuple(head for head in heads if head)):
            name = dialect.prefix + name
        found[name] = tensor
    return found


def settle_head(dialect: Dialect, found: dict[str, Tensor], system: SystemSpec, where: Path) -> None:
    """One bias under one name; one matrix for input and output where config.json says so."""
    head = dialect.guessing
    for other in head.twice:
        bias = found.pop(other, None)
        if bias is not None:
            found.setdefault(head.bias, bias)
    words, own = found.get(f"{dialect.prefix}embeddings.word_embeddings.weight"), found.get(head.words)
    if own is not None and words is not None and system.model.paths().get("tied", True):
        if system.model.kind() == "masked" and not torch.equal(words, own):
            raise DataError(
                f"{head.words} differs from {dialect.prefix}embeddings.word_embeddings.weight, but "
                "config.json says they are one (tie_word_embeddings)",
                file=where,
            )
        del found[head.words]


def settle_types(dialect: Dialect, found: dict[str, Tensor], where: Path) -> None:
    """One type for all tokens is a part of where they stand, if that is added to them as well."""
    types, positions = (
        f"{dialect.prefix}embeddings.{part}_embeddings.weight" for part in ("token_type", "position")
    )
    if types not in found or len(found[types]) > 1:
        return
    if dialect.turned:
        only = found.pop(types)
        if bool(only.any()):
            raise UsageError(
                f"{where}: {TYPES} is 1, and {types} is not zero; where regard's reader adds no "
                "positions, it adds nothing to all tokens alike"
            )
    elif positions in found:
        found[positions] = found[positions] + found.pop(types)


def settle_lead(dialect: Dialect, found: dict[str, Tensor], system: SystemSpec, where: Path) -> None:
    lead = dialect.lead
    if system.model.paths().get("encoder.embedding.table") is not None:
        return
    weight, bias = found.pop(f"{lead}.weight", None), found.pop(f"{lead}.bias", None)
    if weight is None or bias is None:
        return
    if not torch.equal(weight, torch.eye(len(weight))) or bool(bias.any()):
        raise UsageError(
            f"{where}: {lead} turns vectors of {len(weight)} into others of the same width; regard's "
            "reader has a map there only where widths differ"
        )


def waves(count: int, width: int) -> Tensor:
    """The angles by which pairs of coordinates are turned, as RoFormer writes them: all sines before all
    cosines."""
    frequency = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(count)[:, None] * frequency
    return torch.cat((angle.sin(), angle.cos()), dim=-1).float()


def turn(weights: dict[str, Tensor], relation: str) -> None:
    """There 0 means that passages belong together, here 1 does."""
    for part in ("weight", "bias"):
        if f"{relation}.{part}" in weights:
            weights[f"{relation}.{part}"] = weights[f"{relation}.{part}"].flip(0)
