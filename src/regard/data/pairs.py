"""Pairs of texts, prepared for training: read, split, tokenized, stored, and served in batches."""

import hashlib
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from regard.core.errors import DataError
from regard.core.sequences import Tokens
from regard.core.spec import diff
from regard.data.batches import evaluation_batches, plan_epoch
from regard.data.corpora import EMBEDDED, embedded
from regard.data.data import DataSpec
from regard.data.encoding import Shelf, Tally, draw_pairs, encode_pairs
from regard.data.holding_out import held_out
from regard.data.origins import Given, Origin, Pair, Rows, Texts, origin_of
from regard.data.pair_batches import MARKS, PairBatch, PairBatches
from regard.data.pair_cache import PairsReport, Prepared, keep, recall
from regard.data.places import Where, find_splits
from regard.data.readers import PAIR, ReadReport, read_records
from regard.data.tokenizers import Tokenizer, TokenizerSpec

__all__ = ["PairBatch", "PairBatches", "Pairs", "PairsReport", "PairsSpec", "encode_sources"]


class PairsSpec(DataSpec):
    """How pairs of texts become batches."""

    fields: ClassVar[tuple[str, ...]] = PAIR

    source: TokenizerSpec = TokenizerSpec()
    target: TokenizerSpec = TokenizerSpec()
    joint: bool = False
    """One vocabulary, learned from both sides; the two specs must then be equal."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Most tokens of a batch on either side, padding counted."""
    longest: int = Field(default=256, ge=3, le=32_000)
    """Most tokens of a text, begin and end marks counted; longer pairs are left out and reported."""
    held_out: float = Field(default=0.02, ge=0.0, le=0.5)
    """Share of the rows kept for validation when no validation data is given."""
    held_out_most: int = Field(default=2000, ge=1)
    """Most rows kept for validation that way."""
    memory_limit: int = Field(default=1 << 28, ge=0)
    """Bytes of tokens on each side beyond which they are mapped from a file instead of kept in memory."""

    @model_validator(mode="after")
    def _possible(self) -> "PairsSpec":
        if self.joint and self.source != self.target:
            different = (f"{path}: {a!r} and {b!r}" for path, a, b in diff(self.source, self.target))
            raise ValueError(f"joint=True needs equal source and target, but {', '.join(different)}")
        if self.longest > self.batch_tokens:
            raise ValueError(f"longest={self.longest} does not fit into batch_tokens={self.batch_tokens}")
        return self

    def prepare(
        self,
        train: Given,
        valid: Given | None,
        seed: int,
        tokenizers: Mapping[str, Tokenizer] | None,
        cache: Path | None,
    ) -> "Pairs":
        known = None if tokenizers is None else (tokenizers["source"], tokenizers["target"])
        return Pairs.prepare(self, train, valid, seed, known, cache)

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        """Embedded corpora by name, folders with their splits, files, or pairs from Python."""
        if isinstance(data, str) and data in EMBEDDED:
            corpus = embedded(data)
            return corpus.train, corpus.valid if valid is None else valid
        if not isinstance(data, str | Path):
            return data, valid
        splits = find_splits(data)
        return splits.train, splits.valid if valid is None else valid

    def records(self, data: str) -> list[tuple[str, ...]]:
        if data in EMBEDDED:
            return list(embedded(data).test)
        chosen: Where = data
        if Path(data).is_dir():
            splits = find_splits(data)
            if splits.test is None and splits.valid is None:
                raise DataError("this folder has neither a test nor a validation part", file=data)
            chosen = splits.test or splits.valid or ()
        return [(record.fields["source"], record.fields["target"]) for record in read_records(chosen, PAIR)]


class Pairs:
    """Prepared pairs: ``prepare`` makes them, ``epoch`` and ``validation`` serve them."""

    def __init__(self, spec: PairsSpec, seed: int, fingerprint: str, prepared: Prepared) -> None:
        self.spec, self.seed, self.fingerprint = spec, seed, fingerprint
        self.report = prepared.report
        self.source_tokenizer, self.target_tokenizer = (side.tokenizer for side in prepared.train)
        self.tokenizers: Mapping[str, Tokenizer] = {
            "source": self.source_tokenizer,
            "target": self.target_tokenizer,
        }
        self._train, self._valid_texts = prepared.train, prepared.valid
        tokenizers = self.source_tokenizer, self.target_tokenizer
        self._cache: Path | None = None
        self._valid = encode_pairs(prepared.valid, tokenizers, spec.longest, Shelf.none())[0].stores

    @classmethod
    def prepare(
        cls,
        spec: PairsSpec,
        train: Given,
        valid: Given | None = None,
        seed: int = 0,
        tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
        cache: Path | None = None,
    ) -> "Pairs":
        """Read, hold out, learn vocabularies (unless given), encode.

        Only corpora beyond ``spec.memory_limit`` touch ``cache``; without one they go to a temporary folder
        that lives as long as this object.
        """
        started = time.perf_counter()
        origin, valid_origin = origin_of(train), None if valid is None else origin_of(valid)
        fingerprint = _fingerprint(origin, valid_origin)
        with ExitStack() as cleaning:
            folder = cache or _unused_folder(None)
            if cache is None:
                cleaning.callback(shutil.rmtree, folder, ignore_errors=True)
            shelf = _shelf(folder, spec, seed, fingerprint, tokenizers)
            prepared = recall(shelf)
            if prepared is None:
                prepared = _prepare(spec, origin, valid_origin, seed, tokenizers, shelf)
                keep(prepared, shelf)
            report = prepared.report._replace(seconds=time.perf_counter() - started)
            pairs = cls(spec, seed, fingerprint, prepared._replace(report=report))
            pairs._cache = cache
            if report.mapped:
                weakref.finalize(pairs, cleaning.pop_all().close)
        return pairs

    def epoch(self, number: int) -> PairBatches:
        """The batches of an epoch; their order, and what dropout draws, are functions of (seed, number)."""
        folder = _unused_folder(self._cache)
        shelf = Shelf(folder, bytes(32), self.spec.memory_limit)
        try:
            stores = draw_pairs(self._train, self.seed, number, self.spec.longest, shelf)
        finally:
            # A drawn epoch too large for memory is a mapped file, which outlives its name.
            shutil.rmtree(folder, ignore_errors=True)
        return PairBatches(plan_epoch(stores.lengths, self.spec.batch_tokens, self.seed, number), stores)

    def validation(self) -> PairBatches:
        """Validation pairs by length, without dropout; ``rows`` are places in ``validation_texts``."""
        return PairBatches(evaluation_batches(self._valid.lengths, self.spec.batch_tokens), self._valid)

    def validation_texts(self) -> tuple[list[str], list[str]]:
        return [source for source, _ in self._valid_texts], [target for _, target in self._valid_texts]

    def examples(self, most: int) -> list[tuple[str, str]]:
        return self._valid_texts[:most]

    def encode_sources(self, texts: Sequence[str]) -> Tokens:
        return encode_sources(self.source_tokenizer, texts)


def encode_sources(tokenizer: Tokenizer, texts: Sequence[str]) -> Tokens:
    """Texts as a model reads them: pieces + [end]. Nothing is cut, however long."""
    rows = [[*pieces, Tokenizer.end] for pieces in tokenizer.encode_many(texts)]
    return Tokens.pad(rows, Tokenizer.pad)


def _prepare(
    spec: PairsSpec,
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
        tokenizers = _learn(spec, rows)
    valid = list(valid_rows)
    short = _short_enough(valid, tokenizers, spec.longest)
    noting = _Noting(rows, {source for source, _ in short})
    encoded, tally = encode_pairs(noting, tokenizers, spec.longest, shelf)
    if tally.rows == 0:
        raise DataError(_nothing_left(rows.report, tally, spec), file=origin.name)
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
        mapped=any(store.mapped for store in encoded.stores),
        seconds=0.0,
    )
    return Prepared(encoded, short, report)


def _learn(spec: PairsSpec, rows: Rows) -> tuple[Tokenizer, Tokenizer]:
    if spec.joint:
        both = Tokenizer.train(spec.source, Texts(rows, (0, 1)))
        return both, both
    return Tokenizer.train(spec.source, Texts(rows, (0,))), Tokenizer.train(spec.target, Texts(rows, (1,)))


def _short_enough(pairs: list[Pair], tokenizers: tuple[Tokenizer, Tokenizer], longest: int) -> list[Pair]:
    sides = (tokenizer.encode_many([pair[i] for pair in pairs]) for i, tokenizer in enumerate(tokenizers))
    lengths = zip(*sides, strict=True)
    return [
        pair
        for pair, rows in zip(pairs, lengths, strict=True)
        if max(len(row) for row in rows) + MARKS <= longest
    ]


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


def _nothing_left(read: ReadReport, tally: Tally, spec: PairsSpec) -> str:
    left_out = []
    if read.empty:
        left_out.append(f"{read.empty} with an empty side")
    if tally.too_long:
        left_out.append(f"{tally.too_long} longer than longest={spec.longest} tokens")
    return "no pair is left to train on: " + (", ".join(left_out) or "there are none")


def _fingerprint(train: Origin, valid: Origin | None) -> str:
    parts = (train.fingerprint(), "held out" if valid is None else valid.fingerprint())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _unused_folder(inside: Path | None) -> Path:
    """A name for a folder that appears only if something too large for memory has to go there."""
    return (inside or Path(tempfile.gettempdir())) / f"regard-{uuid.uuid4().hex}"


def _shelf(
    folder: Path,
    spec: PairsSpec,
    seed: int,
    fingerprint: str,
    tokenizers: tuple[Tokenizer, Tokenizer] | None,
) -> Shelf:
    """A place named after everything that the prepared data depends on."""
    given = "learned" if tokenizers is None else "\n".join(tokenizer.to_json() for tokenizer in tokenizers)
    key = hashlib.sha256("\n".join((fingerprint, spec.to_json(), str(seed), given)).encode())
    return Shelf(folder / key.hexdigest()[:20], key.digest(), spec.memory_limit)
