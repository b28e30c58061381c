"""Pairs of texts, prepared for training: read, split, tokenized, stored, and served in batches."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.sequences import Tokens
from regard.data.batches import evaluation_batches
from regard.data.corpora import EMBEDDED, embedded
from regard.data.encoding import Shelf, encode_pairs
from regard.data.hub import HubRecords, hub_splits, is_hub_name
from regard.data.lexicon import Lexicon
from regard.data.origins import Given, Origin, origin_of
from regard.data.pair_batches import PairBatch, PairBatches
from regard.data.pair_cache import PairsReport
from regard.data.pair_spec import PairsPlan
from regard.data.places import to_be_judged_on, to_learn_from
from regard.data.portions import supply_in_portions
from regard.data.readers import PAIR, read_records
from regard.data.shortlists import BEST, COMMON, Shortlist, learn_shortlist
from regard.data.supply import Supplied
from regard.data.tokenizers import Tokenizer
from regard.data.whole import supply_whole

__all__ = ["PairBatch", "PairBatches", "Pairs", "PairsReport", "PairsSpec", "encode_sources"]


class PairsSpec(PairsPlan):
    """How pairs of texts become batches."""

    def prepare(
        self,
        train: Given,
        valid: Given | None,
        seed: int,
        known: Lexicon | None,
        cache: Path | None,
    ) -> "Pairs":
        tokenizers = None if known is None else (known["source"], known["target"])
        return Pairs.prepare(self, train, valid, seed, tokenizers, cache)

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        """Embedded corpora by name, folders with their splits, files, or pairs from Python."""
        if isinstance(data, str) and data in EMBEDDED:
            corpus = embedded(data)
            return corpus.train, corpus.valid if valid is None else valid
        if is_hub_name(data):
            hub = hub_splits(data)
            return hub["train"], hub["valid"] if valid is None else valid
        return to_learn_from(data, valid)

    def records(self, data: str) -> list[tuple[str, ...]]:
        if data in EMBEDDED:
            return list(embedded(data).test)
        if is_hub_name(data):
            hub = hub_splits(data)
            named = hub["test"] or hub["valid"] or data
            return [(one.fields["source"], one.fields["target"]) for one in HubRecords(named, PAIR)]
        found = read_records(to_be_judged_on(data), PAIR)
        return [(record.fields["source"], record.fields["target"]) for record in found]


class Pairs:
    """Prepared pairs: ``prepare`` makes them, ``epoch`` and ``validation`` serve them."""

    def __init__(self, spec: PairsSpec, seed: int, supplied: Supplied) -> None:
        self.spec, self.seed, self.fingerprint = spec, seed, supplied.fingerprint
        self.report = supplied.report
        self.source_tokenizer, self.target_tokenizer = supplied.tokenizers
        self.lexicon = Lexicon({"source": self.source_tokenizer, "target": self.target_tokenizer})
        self._supply, self._valid_texts = supplied.supply, supplied.valid
        self._valid = encode_pairs(supplied.valid, supplied.tokenizers, spec.longest, Shelf.none())[0].stores

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
        """Hold out, learn vocabularies (unless given), and get ready to serve batches.

        Plain files of lines that are larger than ``spec.whole_limit`` are served in portions; everything else
        is encoded first. ``cache`` is where stores too large for memory, and indexes of lines, are kept.
        """
        started = time.perf_counter()
        origin, valid_origin = origin_of(train), None if valid is None else origin_of(valid)
        supplied = _supplied(spec, origin, valid_origin, seed, tokenizers, cache)
        report = supplied.report._replace(seconds=time.perf_counter() - started)
        return cls(spec, seed, supplied._replace(report=report))

    def epoch(self, number: int) -> PairBatches:
        """The batches of an epoch; their order, and what dropout draws, are functions of (seed, number)."""
        return self._supply.epoch(number)

    def token_counts(self, field: str) -> np.ndarray:
        """Of the first epoch: of all pairs, or of the first portion of many."""
        return self.epoch(0).token_counts(field, self.lexicon[field].size)

    def shortlist(self, best: int = BEST, common: int = COMMON) -> Shortlist:
        """Learned from the first epoch."""
        return learn_shortlist(
            self.epoch(0).stores, self.source_tokenizer, self.target_tokenizer, best, common
        )

    def validation(self) -> PairBatches:
        """Validation pairs by length, without dropout; ``rows`` are places in ``validation_texts``."""
        return PairBatches(evaluation_batches(self._valid.lengths, self.spec.batch_tokens), self._valid)

    def validation_texts(self) -> tuple[list[str], list[str]]:
        return [source for source, _ in self._valid_texts], [target for _, target in self._valid_texts]

    def examples(self, most: int) -> list[tuple[str, str]]:
        return self._valid_texts[:most]

    def encode_sources(self, texts: Sequence[str]) -> Tokens:
        return encode_sources(self.source_tokenizer, texts)

    def close(self) -> None:
        """End what is being prepared ahead of time; batches can still be asked for."""
        self._supply.close()


def encode_sources(tokenizer: Tokenizer, texts: Sequence[str]) -> Tokens:
    """Texts as a model reads them: pieces + [end]. Nothing is cut, however long."""
    rows = [[*pieces, tokenizer.end] for pieces in tokenizer.encode_many(texts)]
    return Tokens.pad(rows, tokenizer.pad)


def _supplied(
    spec: PairsSpec,
    origin: Origin,
    valid: Origin | None,
    seed: int,
    tokenizers: tuple[Tokenizer, Tokenizer] | None,
    cache: Path | None,
) -> Supplied:
    files = origin.line_files()
    if files is None or files.size <= spec.whole_limit:
        return supply_whole(spec, origin, valid, seed, tokenizers, cache)
    return supply_in_portions(spec, files.indexed(cache), valid, seed, tokenizers)
