"""Running text, prepared for training: read, split, tokenized, stored as one long row, served in windows."""

import hashlib
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from regard.core.errors import DataError
from regard.core.spec import Plain
from regard.data.data import DataSpec
from regard.data.documents import (
    Documents,
    DocumentUnit,
    GivenText,
    Passage,
    Share,
    documents_of,
    text_splits,
)
from regard.data.encoding import Shelf
from regard.data.hub import hub_splits, is_hub_name
from regard.data.letters import WHOLE_WORDS, Letters
from regard.data.lexicon import Lexicon
from regard.data.store import element_type
from regard.data.text_batches import TextBatches, in_order, running_lanes, shuffled_windows
from regard.data.tokenizers import Tokenizer, TokenizerSpec

_AT_ONCE = 2048
"""Passages encoded together."""
_COUNTED = 1 << 22
"""Tokens counted together."""


class TextPlan(DataSpec):
    """What all that is made of running text has in common."""

    fields: ClassVar[tuple[str, ...]] = ("text",)

    tokenizer: TokenizerSpec = TokenizerSpec()
    documents: DocumentUnit = "file"
    """What a document is in a plain text file; records of JSONL or Parquet files are documents anyway."""
    order: Literal["shuffled", "running"] = "shuffled"
    """shuffled: windows stand alone; running: each batch goes on where the one before it stopped."""
    window: int = Field(default=128, ge=1)
    """Predictions in a row of a batch."""
    rows: int = Field(default=16, ge=1)
    """Windows side by side in a batch."""
    jitter: float = Field(default=0.0, ge=0)
    """Standard deviation of the lengths of running windows; 0: all alike."""
    backwards: bool = False
    """Read, and predict, from the last token to the first."""
    grows: bool = False
    """Add words of this text to a vocabulary that is taken over, the most frequent first, up to
    ``tokenizer.size``; those it has keep their numbers."""
    letters: bool = False
    """Give the model the letters of every word, too."""
    held_out: float = Field(default=0.05, ge=0.0, le=0.5)
    """Share of the text, at its end, kept for validation when no validation data is given."""
    memory_limit: int = Field(default=1 << 28, ge=0)
    """Bytes of tokens beyond which they are mapped from a file instead of kept in memory."""

    @model_validator(mode="after")
    def _has_letters(self) -> "TextPlan":
        if self.letters and self.tokenizer.unit not in WHOLE_WORDS:
            raise ValueError(f"letters are those of words, but unit={self.tokenizer.unit!r} cuts words: word")
        return self

    def read_text(
        self,
        train: GivenText,
        valid: GivenText | None,
        seed: int,
        known: Lexicon | None,
        cache: Path | None,
    ) -> "PreparedText":
        started = time.perf_counter()
        whole = documents_of(train, self.documents)
        held = None if valid is None else documents_of(valid, self.documents)
        prints = (whole.fingerprint(), "held out" if held is None else held.fingerprint())
        fingerprint = hashlib.sha256("\n".join(prints).encode()).hexdigest()
        texts, held = _divide(whole, self.held_out) if held is None else (whole, held)
        tokenizer = Tokenizer.train(self.tokenizer, texts.texts) if known is None else known["text"]
        if self.grows and known is not None:
            tokenizer = tokenizer.grown(texts.texts, self.tokenizer.size)
        folder = (cache or Path(tempfile.gettempdir())) / f"regard-{uuid.uuid4().hex}"
        try:
            stream = encode_text(texts, tokenizer, Shelf(folder, bytes(32), self.memory_limit))
            judged = encode_text(held, tokenizer, Shelf.none())
        finally:
            # A stream too large for memory is a mapped file, which outlives its name.
            shutil.rmtree(folder, ignore_errors=True)
        if len(stream.values) < 2:
            raise DataError("there is no text to train on", file=whole.name)
        report = TextReport(
            data=whole.name,
            documents=stream.documents,
            tokens=len(stream.values) - 1,
            words=stream.words,
            characters=stream.characters,
            unknown=stream.unknown / len(stream.values),
            vocabulary=tokenizer.size,
            validation=len(judged.values) - 1,
            mapped=isinstance(stream.values, np.memmap),
            seconds=time.perf_counter() - started,
        )
        return PreparedText(self, seed, fingerprint, tokenizer, stream, judged, held, report)

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        if is_hub_name(data):
            hub = hub_splits(data)
            return hub["train"], hub["valid"] if valid is None else valid
        if not isinstance(data, str | Path):
            return data, valid
        splits = text_splits(data)
        return splits.train, splits.valid if valid is None else valid

    def records(self, data: str) -> list[tuple[str, ...]]:
        texts, held = list[tuple[str, ...]](), ""
        for passage in self._judged_on(data):
            held += passage.text
            if passage.ends:
                texts.append((held,))
                held = ""
        return texts

    def _judged_on(self, data: str) -> Documents:
        """The test part, the validation part, or the whole."""
        if is_hub_name(data):
            hub = hub_splits(data)
            return documents_of(hub["test"] or hub["valid"] or data, self.documents)
        splits = text_splits(data)
        chosen = splits.test or splits.valid or splits.train if Path(data).is_dir() else splits.train
        return documents_of(tuple(map(Path, chosen)), self.documents)


class TextSpec(TextPlan):
    """How text becomes windows of tokens."""

    def prepare(
        self,
        train: GivenText,
        valid: GivenText | None,
        seed: int,
        known: Lexicon | None,
        cache: Path | None,
    ) -> "PreparedText":
        return self.read_text(train, valid, seed, known, cache)


class TextReport(NamedTuple):
    """What became of the text."""

    data: str
    documents: int
    tokens: int
    words: int
    """Between blanks; the end of a document counts as one."""
    characters: int
    unknown: float
    """Share of the training tokens that are unknown."""
    vocabulary: int
    validation: int
    """Tokens for validation."""
    mapped: bool
    seconds: float

    def summary(self) -> list[str]:
        unknown = f", {self.unknown:.2%} unknown" if self.unknown else ""
        return [
            f"{self.tokens:,} tokens in {self.documents:,} documents ({self.words:,} words) and "
            f"{self.validation:,} tokens for validation, vocabulary {self.vocabulary:,}{unknown}, "
            f"{self.seconds:.1f} s"
        ]

    def facts(self) -> dict[str, Plain]:
        return self._asdict()


class Stream(NamedTuple):
    """All tokens in a row: an end token, and after every document another."""

    values: np.ndarray
    documents: int
    words: int
    characters: int
    unknown: int


class PreparedText:
    def __init__(
        self,
        spec: TextPlan,
        seed: int,
        fingerprint: str,
        tokenizer: Tokenizer,
        stream: Stream,
        judged: Stream,
        held: Documents,
        report: TextReport,
    ) -> None:
        self.spec, self.seed, self.fingerprint, self.report = spec, seed, fingerprint, report
        self.lexicon = Lexicon({"text": tokenizer})
        turned = slice(None, None, -1) if spec.backwards else slice(None)
        self.stream, self.judged = stream.values[turned], judged.values[turned]
        self._held, self._letters = held, Letters(tokenizer) if spec.letters else None

    def epoch(self, number: int) -> TextBatches:
        spec = self.spec
        if spec.order == "running":
            windows = running_lanes(self.stream, spec.window, spec.rows, self.seed, number, spec.jitter)
        else:
            windows = shuffled_windows(self.stream, spec.window, spec.rows, self.seed, number)
        return windows.spelled(self._letters)

    def close(self) -> None:
        """Nothing is prepared ahead of time."""

    def validation(self) -> TextBatches:
        if len(self.judged) < 2:
            raise DataError("there is no text to validate on: give --valid, or more text")
        windows = in_order(self.judged, self.spec.window, self.spec.rows, self.spec.order == "running")
        return windows.spelled(self._letters)

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        """All documents end to end, and where each begins, for models that count them."""
        values = self.stream[1:]
        return values, np.concatenate(([0], np.flatnonzero(values == self.lexicon["text"].end) + 1))

    def token_counts(self, field: str) -> np.ndarray:
        """How often each token occurs in the training data."""
        counts = np.zeros(self.lexicon[field].size, dtype=np.int64)
        # Counting makes 64 bits of what it is given: a long stream goes through it piece by piece.
        for begin in range(0, len(self.stream), _COUNTED):
            counts += np.bincount(self.stream[begin : begin + _COUNTED], minlength=len(counts))
        return counts

    def examples(self, most: int) -> list[tuple[str, str]]:
        """Beginnings of validation documents, and how they go on; or texts of which one word is hidden, and
        the word, for a model that guesses what is."""
        found: list[tuple[str, str]] = []
        for passage in self._held:
            words = passage.text.split(" ")[:40]
            if len(found) == most:
                break
            if len(words) >= 4:
                half = len(words) // 2
                found.append((" ".join(words[:half]), " ".join(words[half:])))
        return found if self.lexicon["text"].marks.hidden is None else blanked(found)


def encode_text(documents: Documents, tokenizer: Tokenizer, shelf: Shelf) -> Stream:
    end = tokenizer.end
    writer = shelf.writer("text.tokens", element_type(tokenizer.size))
    count = words = characters = unknown = 0
    inside = False
    try:
        writer.add([[end]])
        for some in _groups(documents):
            texts = []
            for passage in some:
                texts.append(tokenizer.going_on(passage.text) if inside else passage.text)
                inside = not passage.ends
            rows = tokenizer.encode_many(texts)
            writer.add(
                [[*row, end] if passage.ends else row for row, passage in zip(rows, some, strict=True)]
            )
            ends = sum(passage.ends for passage in some)
            count += ends
            words += ends + sum(len(passage.text.split()) for passage in some)
            characters += ends + sum(len(passage.text) for passage in some)
            unknown += sum(row.count(tokenizer.unknown) for row in rows)
        return Stream(writer.finish().values, count, words, characters, unknown)
    finally:
        writer.discard()


def _groups(documents: Documents) -> Iterator[list[Passage]]:
    """Some passages at a time: enough for the tokenizer's threads, little in memory."""
    group, size = list[Passage](), 0
    for passage in documents:
        group.append(passage)
        size += len(passage.text)
        if len(group) == _AT_ONCE or size > 4 << 20:
            yield group
            group, size = [], 0
    if group:
        yield group


def _divide(whole: Documents, share: float) -> tuple[Documents, Documents]:
    """Training text and, after it, validation text."""
    characters = sum(map(len, whole.texts))
    kept = characters - round(share * characters)
    return Share(whole, kept, rest=False), Share(whole, kept, rest=True)


def blanked(examples: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The last word of each first half, hidden; what follows stays in sight."""
    found = []
    for before, after in examples:
        words = before.split()
        if len(words) > 1:
            found.append((" ".join([*words[:-1], "___", after]), words[-1]))
    return found
