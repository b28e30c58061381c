"""What a peer is given of a recurrent run: its shape, its weights if it knows such a model, lines as ids."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import decoding
import protocol
import torch
from torch import Tensor

import regard

SIZES = (8, 16, 32, 64, 128, 256)
"""Sentences that are read together: the peer takes what is fastest for it."""
TRIED_ON = 256

_ENCODER, _DECODER = "encoder.stack.layers.0.mixers.0", "decoder.stack.layers.0.mixers.0"


class Learned(NamedTuple):
    """Weights of a decoder that steps, looks and feeds back, by what they do."""

    embedding: Tensor
    reading: tuple[dict[str, Tensor], dict[str, Tensor]]
    """Of the encoder's cell, forward and backward, by torch's names."""
    stepping: dict[str, Tensor]
    score: Tensor
    bridge: tuple[Tensor, Tensor]
    """To all tensors of the first state, one under the other."""
    combine: tuple[Tensor, Tensor]
    """Of what was found, then of the state."""
    words: Tensor


class Given(NamedTuple):
    run: Any
    asked: Any
    learned: Learned | None
    """None: peers have no such model; they get weights of their own and write ``length`` tokens."""
    length: int

    @property
    def words(self) -> Any:
        return self.run.lexicon["source"]

    @property
    def width(self) -> int:
        return int(self.run.model.encoder.embedding.width)

    @property
    def hidden(self) -> int:
        return int(self.run.model.decoder.stack.layers[0].mixers[0].cell.width)

    @property
    def each_way(self) -> int:
        return int(self.run.model.encoder.width) // 2


class Rows(NamedTuple):
    ids: Tensor
    lengths: Tensor


Translate = Callable[[Rows], list[list[int]]]
"""Ids of the answers to rows that are padded and sorted, the longest first."""


def stand_in(name: str, **members: Any) -> None:
    """For a module that a peer imports and, where nothing but translating is asked, does not use."""
    module = ModuleType(name)
    vars(module).update(members)
    sys.modules.setdefault(name, module)


def given() -> Given:
    asked = decoding.asked()
    run = regard.load(asked.run, engine="torch")
    weights = run.model.state_dict()
    written = [len(answer.candidates[0].pieces) for answer in run.answers(asked.lines[:200])]
    learned = _learned(weights) if f"{_DECODER}.combine.weight" in weights else None
    return Given(run, asked, learned, round(sum(written) / len(written)))


def _learned(weights: dict[str, Tensor]) -> Learned:
    table = weights["encoder.embedding.tokens.weight"]

    def cell(name: str) -> dict[str, Tensor]:
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return {part: weights[f"{name}.fused.{part}_l0"] for part in parts}

    def linear(name: str) -> tuple[Tensor, Tensor]:
        return weights[f"{_DECODER}.{name}.weight"], weights[f"{_DECODER}.{name}.bias"]

    return Learned(
        table,
        (cell(f"{_ENCODER}.cells.0"), cell(f"{_ENCODER}.cells.1")),
        cell(f"{_DECODER}.cell"),
        weights[f"{_DECODER}.score.weight"][0],
        linear("bridge.linear"),
        linear("combine"),
        # Peers have no narrower layer in front of the words: both matrices become one.
        table @ weights["decoder.head.lead.weight"],
    )


def batches(words: Any, lines: Sequence[str], size: int) -> Iterator[tuple[list[int], Rows]]:
    """Which lines, and these padded, the longest first."""
    ids = [[*row, words.end] for row in words.encode_many(list(lines))]
    order = sorted(range(len(ids)), key=lambda at: -len(ids[at]))
    for begin in range(0, len(order), size):
        some = order[begin : begin + size]
        rows = [torch.tensor(ids[at]) for at in some]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=words.pad)
        yield some, Rows(padded, torch.tensor([len(row) for row in rows]))


def texts(words: Any, translate: Translate, lines: Sequence[str], size: int) -> list[str]:
    found = [""] * len(lines)
    for some, rows in batches(words, lines, size):
        for at, ids in zip(some, translate(rows), strict=True):
            found[at] = words.decode(ids[: ids.index(words.end)] if words.end in ids else ids)
    return found


def compete(peer: Given, translate: Translate, **facts: Any) -> None:
    lines, size = peer.asked.lines, 1
    if peer.asked.alone is None:
        size = min(SIZES, key=lambda size: _seconds(peer, translate, lines[:TRIED_ON], size))
    if peer.learned is not None:
        facts["same_greedily" if peer.asked.beam == 1 else "same"] = _agreement(peer, translate, size)
    else:
        facts["tokens"] = peer.length

    def step() -> protocol.Step:
        if peer.asked.alone is None:
            return decoding.answered(texts(peer.words, translate, lines, size))
        return decoding.answered([texts(peer.words, translate, [line], 1)[0] for line in lines])

    protocol.ready(together=size, **facts)
    protocol.serve(step)


def _seconds(peer: Given, translate: Translate, lines: Sequence[str], size: int) -> float:
    began = time.perf_counter()
    texts(peer.words, translate, lines, size)
    return time.perf_counter() - began


def _agreement(peer: Given, translate: Translate, size: int) -> float:
    """Share of the lines to which the peer gives Regard's answer: it has the same weights."""
    lines, beam = peer.asked.lines[:TRIED_ON], peer.asked.beam
    kind = ["search.kind=greedy"] if beam == 1 else ["search.kind=beam", f"search.size={beam}"]
    search = peer.run.spec.override(kind).search
    ours = [answer.text for answer in peer.run.stream(lines, search, detail="text")]
    theirs = texts(peer.words, translate, lines, max(size, 16))
    return sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(lines)
