"""A corpus that is prepared as a whole: read, split, tokenized and stored before the first batch."""

import hashlib
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from regard.core.errors import DataError
from regard.data.batches import plan_epoch
from regard.data.encoding import Encoded, Shelf, draw_pairs, encode_pairs, nothing_left, short_enough
from regard.data.holding_out import held_out
from regard.data.origins import Origin, Pair, Rows
from regard.data.pair_batches import PairBatches
from regard.data.pair_cache import PairsReport, Prepared, keep, recall
from regard.data.pair_spec import PairsPlan
from regard.data.supply import Supplied, Supply
from regard.data.tokenizers import Tokenizer
from regard.data.vocabularies import learn_vocabularies


class Whole(Supply):
    """Every epoch goes through all pairs."""

    def __init__(self, spec: PairsPlan, seed: int, encoded: Encoded, cache: Path | None) -> None:
        self._spec, self._seed, self._encoded, self._cache = spec, seed, encoded, cache

    def epoch(self, number: int) -> PairBatches:
        folder = _unused_folder(self._cache)
        shelf = Shelf(folder, bytes(32), self._spec.memory_limit)
        try:
            stores = draw_pairs(self._encoded, self._seed, number, self._spec.longest, shelf)
        finally:
            # A drawn epoch too large for memory is a mapped file, which outlives its name.
            shutil.rmtree(folder, ignore_errors=True)
        return PairBatches(plan_epoch(stores.lengths, self._spec.batch_tokens, self._seed, number), stores)


def supply_whole(
    spec: PairsPlan,
    origin: Origin,
    valid: Origin | None,
    seed: int,
    tokenizers: tuple[Tokenizer, Tokenizer] | None,
    cache: Path | None,
) -> Supplied:
    """Only corpora beyond ``spec.memory_limit`` touch ``cache``; without one they go to a temporary folder
    that lives as long as the supply.
    """
    fingerprint = _fingerprint(origin, valid)
    with ExitStack() as cleaning:
        folder = cache or _unused_folder(None)
        if cache is None:
            cleaning.callback(shutil.rmtree, folder, ignore_errors=True)
        shelf = _shelf(folder, spec, seed, fingerprint, tokenizers)
        prepared = recall(shelf)
        if prepared is None:
            prepared = _prepare(spec, origin, valid, seed, tokenizers, shelf)
            keep(prepared, shelf)
        supply = Whole(spec, seed, prepared.train, cache)
        if prepared.report.mapped:
            weakref.finalize(supply, cleaning.pop_all().close)
    source, target = (side.tokenizer for side in prepared.train)
    return Supplied(supply, (source, target), prepared.valid, prepared.report, fingerprint)


def _prepare(
    spec: PairsPlan,
    origin: Origin,
    valid_origin: Origin | None,
    seed: int,
    tokenizers: tuple[Tokenizer, Tokenizer] | None,
    shelf: Shelf,
) -> Prepared:
    if valid_origin is None:
        sources = (source for source, _ in Rows(origin))
        held = held_out(sources, spec.held_out, spec.held_out_most, seed)
        rows, valid_rows = Rows(origin, held), Rows(origin, held, wanted=True)
    else:
        rows, valid_rows = Rows(origin), Rows(valid_origin)
    if tokenizers is None:
        tokenizers = learn_vocabularies(spec, rows)
    valid = list(valid_rows)
    short = short_enough(valid, tokenizers, spec.longest)
    noting = _Noting(rows, {source for source, _ in short})
    encoded, tally = encode_pairs(noting, tokenizers, spec.longest, shelf)
    if tally.rows == 0:
        raise DataError(nothing_left(rows.report, tally, spec.longest), file=origin.name)
    report = PairsReport(
        data=origin.name,
        examples=tally.rows,
        too_long=tally.too_long,
        empty=rows.report.empty,
        first_empty=tuple(rows.report.first_empty),
        validation=len(short),
        validation_too_long=len(valid) - len(short),
        validation_empty=0 if valid_origin is None else valid_rows.report.empty,
        validation_seen=len(noting.found),
        source_tokens=tally.tokens[0],
        target_tokens=tally.tokens[1],
        source_unknown=tally.unknown[0] / max(1, tally.tokens[0]),
        target_unknown=tally.unknown[1] / max(1, tally.tokens[1]),
        source_vocabulary=tokenizers[0].size,
        target_vocabulary=tokenizers[1].size,
        padding_share=plan_epoch(encoded.stores.lengths, spec.batch_tokens, seed, 0).padding_share,
        mapped=any(side.pieces.mapped for side in encoded),
        seconds=0.0,
    )
    return Prepared(encoded, short, report)


class _Noting:
    """Passes rows on and notes which of the ``known`` sources were among them."""

    def __init__(self, rows: Iterable[Pair], known: set[str]) -> None:
        self._rows, self._known = rows, known
        self.found: set[str] = set()

    def __iter__(self) -> Iterator[Pair]:
        for pair in self._rows:
            if pair[0] in self._known:
                self.found.add(pair[0])
            yield pair


def _fingerprint(train: Origin, valid: Origin | None) -> str:
    parts = (train.fingerprint(), "held out" if valid is None else valid.fingerprint())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _unused_folder(inside: Path | None) -> Path:
    """A name for a folder that appears only if something too large for memory has to go there."""
    return (inside or Path(tempfile.gettempdir())) / f"regard-{uuid.uuid4().hex}"


def _shelf(
    folder: Path,
    spec: PairsPlan,
    seed: int,
    fingerprint: str,
    tokenizers: tuple[Tokenizer, Tokenizer] | None,
) -> Shelf:
    """A place named after everything that the prepared data depends on."""
    given = "learned" if tokenizers is None else "\n".join(tokenizer.to_json() for tokenizer in tokenizers)
    key = hashlib.sha256("\n".join((fingerprint, spec.to_json(), str(seed), given)).encode())
    return Shelf(folder / key.hexdigest()[:20], key.digest(), spec.memory_limit)
