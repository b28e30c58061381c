"""A corpus too large to be looked at as a whole before training: read in portions, one an epoch.

Files are divided into blocks of consecutive lines. A pass over the data goes through all blocks in an order
that is a function of (seed, pass), a portion being as many of them as fit, so that every line is met once a
pass and a portion holds lines from everywhere. A portion is then treated as a small corpus is: encoded, drawn
from if there is subword dropout, and planned. What must be known before the first portion, vocabularies and
validation pairs, comes from samples.
"""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from regard.core.errors import DataError
from regard.data.batches import plan_epoch
from regard.data.encoding import (
    Shelf,
    Tally,
    draw_pairs,
    encode_pairs,
    left_out,
    nothing_left,
    short_enough,
)
from regard.data.holding_out import affordable, content_hash
from regard.data.line_files import IndexedLines
from regard.data.line_index import BLOCK
from regard.data.one_ahead import OneAhead
from regard.data.origins import Origin, Pair, Rows, Texts
from regard.data.pair_batches import PairBatches
from regard.data.pair_cache import PairsReport
from regard.data.pair_spec import PairsPlan
from regard.data.randomness import keyed
from regard.data.readers import ReadReport, full_records
from regard.data.supply import Supplied, Supply
from regard.data.tokenizers import Tokenizer
from regard.data.vocabularies import learn_vocabularies

# Set apart what is drawn here from what batches draw with the same seed.
_ORDER, _PLACES = 1, 2


@dataclass(frozen=True)
class HeldOut:
    """Sources that training does without, by their hashes."""

    hashes: frozenset[int]
    seed: int

    def __contains__(self, source: str) -> bool:
        return bool(self.hashes) and content_hash(source, self.seed) in self.hashes


class BlockRows:
    """The full pairs in some blocks, without those held out; ``report`` and ``held`` tell about the rest."""

    def __init__(
        self,
        lines: IndexedLines,
        blocks: Sequence[int],
        held_out: HeldOut,
        stop: threading.Event | None = None,
    ) -> None:
        self._lines, self._blocks, self._held_out = lines, blocks, held_out
        self._stop = stop or threading.Event()
        self.report, self.held = ReadReport(), 0

    def __iter__(self) -> Iterator[Pair]:
        self.report, self.held = ReadReport(), 0
        records = chain.from_iterable(self._lines.block(block) for block in self._still_wanted())
        for record in full_records(records, self.report):
            if record.fields["source"] in self._held_out:
                self.held += 1
            else:
                yield record.fields["source"], record.fields["target"]

    def _still_wanted(self) -> Iterator[int]:
        for block in self._blocks:
            if self._stop.is_set():
                raise _StoppedError
            yield block


class _StoppedError(Exception):
    """Nobody wants this portion any more."""


class Portion(NamedTuple):
    """Batches, and an account of the lines they were made from."""

    batches: PairBatches
    read: ReadReport
    tally: Tally


class Portions(Supply):
    """Portion ``n % count`` of pass ``n // count`` is epoch n; the next one is made in the meantime."""

    def __init__(
        self,
        spec: PairsPlan,
        lines: IndexedLines,
        seed: int,
        tokenizers: tuple[Tokenizer, Tokenizer],
        held_out: HeldOut,
    ) -> None:
        self._spec, self._lines, self._seed = spec, lines, seed
        self._tokenizers, self._held_out = tokenizers, held_out
        self.count = -(-lines.blocks // max(1, spec.portion_lines // BLOCK))
        self._ahead: OneAhead[Portion] = OneAhead(self._make)

    def epoch(self, number: int) -> PairBatches:
        return self._ahead.get(number).batches

    def first(self) -> Portion:
        """Blocks from everywhere in random order: a fair sample of the corpus."""
        return self._ahead.peek(0)

    def close(self) -> None:
        self._ahead.close()

    def blocks(self, number: int) -> list[int]:
        """Which blocks are portion ``number``, in the order of the file: batches are shuffled anyway."""
        turn, part = divmod(number, self.count)
        order = keyed(self._seed, turn, _ORDER).permutation(self._lines.blocks)
        begin, end = (len(order) * bound // self.count for bound in (part, part + 1))
        return sorted(order[begin:end].tolist())

    def _make(self, number: int, stop: threading.Event) -> Portion:
        spec, seed = self._spec, self._seed
        rows = BlockRows(self._lines, self.blocks(number), self._held_out, stop)
        encoded, tally = encode_pairs(rows, self._tokenizers, spec.longest, Shelf.none())
        if tally.rows == 0:
            said = nothing_left(rows.report, tally, spec.longest)
            place = f"portion {number % self.count + 1} of {self.count}"
            raise DataError(f"{place}: {said}", file=self._lines.name)
        stores = draw_pairs(encoded, seed, number, spec.longest, Shelf.none())
        plan = plan_epoch(stores.lengths, spec.batch_tokens, seed, number)
        notice = self._notice(number, rows, tally)
        return Portion(PairBatches(plan, stores, notice), rows.report, tally)

    def _notice(self, number: int, rows: BlockRows, tally: Tally) -> str | None:
        """Rows left out are told as they are met. Later passes leave out the same ones."""
        held = [f"{rows.held} whose source is held out"] if rows.held else []
        said = [*held, *left_out(rows.report, tally, self._spec.longest)]
        if number >= self.count or not said:
            return None
        first = f"; the first empty ones: {', '.join(rows.report.first_empty)}" if rows.report.empty else ""
        return f"portion {number + 1} of {self.count}: {tally.rows} pairs, left out {', '.join(said)}{first}"


def supply_in_portions(
    spec: PairsPlan,
    lines: IndexedLines,
    valid: Origin | None,
    seed: int,
    tokenizers: tuple[Tokenizer, Tokenizer] | None,
) -> Supplied:
    """Vocabularies from a sample (unless given), validation pairs from random places (unless given)."""
    sampled = _spread(lines, spec.sample_bytes)
    nothing = HeldOut(frozenset(), seed)
    if valid is None:
        sample = BlockRows(lines, sampled, nothing)
        pairs = _draw_validation(spec, lines, sample, seed)
        held_out = HeldOut(frozenset(content_hash(source, seed) for source, _ in pairs), seed)
        empty = 0
    else:
        valid_rows, held_out = Rows(valid), nothing
        pairs = list(valid_rows)
        empty = valid_rows.report.empty
    if tokenizers is None:
        tokenizers = learn_vocabularies(spec, BlockRows(lines, sampled, held_out))
    short = short_enough(pairs, tokenizers, spec.longest)
    supply = Portions(spec, lines, seed, tokenizers, held_out)
    report = _report(lines, supply, tokenizers)._replace(
        validation=len(short),
        validation_too_long=len(pairs) - len(short),
        validation_empty=empty,
        validation_seen=0 if valid is None else None,
    )
    # The same bytes packed, or under another limit, would be served differently: that is told apart.
    parts = ("portions", lines.fingerprint(), "held out" if valid is None else valid.fingerprint())
    fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return Supplied(supply, tokenizers, short, report, fingerprint)


def _spread(lines: IndexedLines, most_bytes: int) -> list[int]:
    """Blocks at equal distances that hold about so many bytes; one at least."""
    count = min(lines.blocks, max(1, most_bytes * lines.blocks // lines.size))
    return [number * lines.blocks // count for number in range(count)]


def _draw_validation(spec: PairsPlan, lines: IndexedLines, sample: BlockRows, seed: int) -> list[Pair]:
    wanted = min(max(1, round(spec.held_out * lines.lines)), spec.held_out_most)
    if spec.held_out <= 0:
        return []
    # In random order, since not all of them may be answered at every validation.
    places = keyed(seed, 0, _PLACES).choice(lines.lines, wanted, replace=False).tolist()
    records = chain.from_iterable(lines.records(place, place + 1) for place in places)
    drawn = [
        (record.fields["source"], record.fields["target"]) for record in full_records(records, ReadReport())
    ]
    kept = affordable([source for source, _ in drawn], Texts(sample, (0,)), spec.held_out, seed)
    return [drawn[place] for place in kept]


def _report(lines: IndexedLines, supply: Portions, tokenizers: tuple[Tokenizer, Tokenizer]) -> PairsReport:
    """What the first portion tells about all; nothing yet about validation."""
    batches, read, tally = supply.first()
    header = sum(1 for _ in lines.records(0, 1)) == 0
    return PairsReport(
        data=lines.name,
        examples=lines.lines - header,
        too_long=tally.too_long,
        empty=read.empty,
        first_empty=tuple(read.first_empty),
        validation=0,
        validation_too_long=0,
        validation_empty=0,
        validation_seen=None,
        source_tokens=tally.tokens[0],
        target_tokens=tally.tokens[1],
        source_unknown=tally.unknown[0] / max(1, tally.tokens[0]),
        target_unknown=tally.unknown[1] / max(1, tally.tokens[1]),
        source_vocabulary=tokenizers[0].size,
        target_vocabulary=tokenizers[1].size,
        padding_share=batches.padding_share,
        mapped=False,
        seconds=0.0,
        portions=supply.count,
        sampled=read.kept + read.empty,
    )
