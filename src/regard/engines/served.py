"""What differs between the kinds of models whose searches CTranslate2 does."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regard.data.tokenizers import Tokenizer
from regard.engines.layout import Layout
from regard.engines.shares import shares
from regard.interop.ctranslate2_specs import names_of

_SPREAD = 4
"""Prompts are continued together whose lengths differ by at most a fourth of the steps they take."""
_ROWS = 64
"""Prompts that are continued together at most."""
_JUDGED = 2048
"""Tokens that are judged together."""


class Batch(NamedTuple):
    """Rows that are searched together."""

    rows: list[int]
    limit: int
    """Steps after which it stops them all."""


class Served:
    manner: ClassVar[str] = ""
    """What is special about the way it is asked, in words for people."""
    weighs_all: ClassVar[bool] = True
    """The probabilities of what it finds are among all words."""
    budgets: ClassVar[tuple[int, ...]]
    """Tokens that may be given together, those of all hypotheses counted; the first is a good guess."""

    def __init__(self, read: Tokenizer, written: Tokenizer, positions: int) -> None:
        self.positions = positions
        """Tokens that it can read, and write."""
        self._read, self._written = names_of(read), names_of(written)
        self.end = self._written[written.end]

    @cached_property
    def _number_of(self) -> Callable[[str], int]:
        return {name: number for number, name in enumerate(self._written)}.__getitem__

    def names(self, ids: Sequence[int]) -> list[str]:
        return list(map(self._read.__getitem__, ids))

    def names_written(self, ids: Sequence[int]) -> list[str]:
        return list(map(self._written.__getitem__, ids))

    def ids(self, names: Sequence[str]) -> list[int]:
        return list(map(self._number_of, names))

    def load(self, folder: Path, layout: Layout) -> Any:
        raise NotImplementedError

    def batches(
        self,
        given: Sequence[Sequence[int]],
        longest: Sequence[int],
        steady: bool,
        beam: int,
        workers: int,
        budget: int,
    ) -> list[Batch]:
        """The shortest first; rows that it has no room for are in none. Of a ``steady`` search the
        beginning does not depend on where it is cut off; a ``beam`` has so many hypotheses for each row, and
        all of them together have at most ``budget`` tokens."""
        raise NotImplementedError

    def ask(self, engine: Any, texts: list[list[str]], limit: int, options: Mapping[str, Any]) -> list[Any]:
        """One future for each text."""
        raise NotImplementedError

    def found(self, result: Any) -> list[list[str]]:
        """What was found, best first, each with its end if it has one."""
        raise NotImplementedError

    def judge(
        self, engine: Any, texts: list[list[str]], written: list[list[str]], ended: list[bool]
    ) -> list[list[float]]:
        """Log-probabilities of the tokens written after each text, and then of the end."""
        raise NotImplementedError


class Translators(Served):
    budgets: ClassVar[tuple[int, ...]] = (2048, 4096, 8192, 1024)

    def load(self, folder: Path, layout: Layout) -> Any:
        import ctranslate2

        return ctranslate2.Translator(str(folder), **layout.options())

    def batches(
        self,
        given: Sequence[Sequence[int]],
        longest: Sequence[int],
        steady: bool,
        beam: int,
        workers: int,
        budget: int,
    ) -> list[Batch]:
        most = self.positions
        rows = [row for row, ids in enumerate(given) if len(ids) <= most and longest[row] <= most]
        if len(rows) < 2:
            return [Batch([row], longest[row]) for row in rows]
        lengths = np.array([len(given[row]) for row in rows], dtype=np.int64)
        dealt = [[rows[index] for index in share] for share in shares(lengths, workers, budget // beam)]
        return [Batch(some, max(longest[row] for row in some)) for some in dealt]

    def ask(self, engine: Any, texts: list[list[str]], limit: int, options: Mapping[str, Any]) -> list[Any]:
        futures: list[Any] = engine.translate_batch(
            texts,
            asynchronous=True,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=0,
            return_end_token=True,
            **options,
        )
        return futures

    def found(self, result: Any) -> list[list[str]]:
        hypotheses: list[list[str]] = result.hypotheses
        return hypotheses

    def judge(
        self, engine: Any, texts: list[list[str]], written: list[list[str]], ended: list[bool]
    ) -> list[list[float]]:
        scored = engine.score_batch(
            texts, written, max_batch_size=_JUDGED, batch_type="tokens", max_input_length=0
        )
        # It adds an end to all of them.
        return [
            list(one.log_probs)[: len(more) + end]
            for one, more, end in zip(scored, written, ended, strict=True)
        ]


class Shortlisted(Translators):
    """Writes only what is on the list of one of the texts that are asked together: the fewer they are, the
    shorter it is. A line may so be answered otherwise alone than among others, and how many are asked
    together is not a matter of speed alone."""

    manner = "shortlist"
    weighs_all = False
    budgets = (1024,)

    def ask(self, engine: Any, texts: list[list[str]], limit: int, options: Mapping[str, Any]) -> list[Any]:
        return super().ask(engine, texts, limit, {**options, "use_vmap": True})


class Generators(Served):
    budgets = (2048,)
    """Of its prompts so many rows are taken as lengths allow."""

    def load(self, folder: Path, layout: Layout) -> Any:
        import ctranslate2

        return ctranslate2.Generator(str(folder), **layout.options())

    def batches(
        self,
        given: Sequence[Sequence[int]],
        longest: Sequence[int],
        steady: bool,
        beam: int,
        workers: int,
        budget: int,
    ) -> list[Batch]:
        """It reads as much as the shortest prompt has at once, and the rest of the others token by token."""
        # The last token that is written is not read any more.
        rows = [row for row, ids in enumerate(given) if len(ids) + longest[row] - 1 <= self.positions]
        most, batches = min(_ROWS, -(-len(rows) // workers)), list[Batch]()
        for limit in sorted({longest[row] for row in rows}):
            some = list[int]()
            for row in sorted(
                (row for row in rows if longest[row] == limit), key=lambda row: len(given[row])
            ):
                apart = _may_differ(len(given[some[0]]), limit, steady) if some else 0
                if some and (len(some) == most or len(given[row]) > len(given[some[0]]) + apart):
                    batches.append(Batch(some, limit))
                    some = []
                some.append(row)
            batches.append(Batch(some, limit))
        return batches

    def ask(self, engine: Any, texts: list[list[str]], limit: int, options: Mapping[str, Any]) -> list[Any]:
        futures: list[Any] = engine.generate_batch(
            texts,
            asynchronous=True,
            max_length=limit,
            min_length=0,
            include_prompt_in_result=False,
            return_end_token=True,
            **options,
        )
        return futures

    def found(self, result: Any) -> list[list[str]]:
        sequences: list[list[str]] = result.sequences
        return sequences

    def judge(
        self, engine: Any, texts: list[list[str]], written: list[list[str]], ended: list[bool]
    ) -> list[list[float]]:
        # What was cut off may have no room for an end.
        whole = [
            [*text, *more, *([self.end] if end else [])]
            for text, more, end in zip(texts, written, ended, strict=True)
        ]
        scored = engine.score_batch(whole, max_batch_size=_JUDGED, batch_type="tokens", max_input_length=0)
        return [list(one.log_probs)[len(text) - 1 :] for text, one in zip(texts, scored, strict=True)]


def _may_differ(shortest: int, limit: int, steady: bool) -> int:
    """By how much prompts may be longer than the shortest beside them. Where that is a single token it takes
    the rest of the others for part of their answers; beams keep to themselves."""
    return limit // _SPREAD if steady and shortest > 1 else 0
