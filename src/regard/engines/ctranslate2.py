"""CTranslate2 (OpenNMT): searches of Transformers in C++, several batches side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.data.batches import evaluation_batches
from regard.data.tokenizers import Tokenizer
from regard.engines.layout import Layout, Layouts
from regard.interop.ctranslate2_specs import names_of
from regard.search.hypotheses import Hypothesis
from regard.search.search import SearchSpec
from regard.tasks.task import Wishes

_ALMOST_NO_PENALTY = 1e-9
"""Of length; at none at all it would stop by a rule of its own."""
_BULK = 48
"""Lines from which on it pays to find out how this machine is used best."""
BUDGET, ENOUGH, LEAST = 2048, 512, 64
"""Tokens that are given together: at most; from which on more of them make it hardly faster; and so few that
other workers are not asked to help."""


class Found(NamedTuple):
    """One hypothesis as it comes back."""

    tokens: list[str]
    """With its end, if it has one."""
    score: float


class CTranslate2:
    """A model that was converted to ``folder``. What is loaded stays; nothing of a request is kept."""

    name = "ctranslate2"

    def __init__(self, folder: Path, model: "Served", layouts: Layouts) -> None:
        self.folder, self.model, self.layouts = folder, model, layouts
        self._loaded: dict[Layout, Any] = {}

    def refusal(self, search: SearchSpec, wishes: Wishes, keep: bool) -> str | None:
        if keep:
            return "it cannot show its search"
        if wishes != Wishes():
            return "it knows no wishes about words"
        if search.constraints:
            return f"it is not given the constraint {search.constraints[0].kind()!r}"
        if search.shortest:
            return f"it counts answers of at least {search.shortest} tokens otherwise"
        refusal: Callable[[Any], str | None]
        refusal, _ = _SEARCHES.get(search.kind() or "", (_unknown_search, _no_options))
        return refusal(search)

    def search(
        self, given: Sequence[Sequence[int]], longest: Sequence[int], search: SearchSpec, detail: bool
    ) -> list[list[Hypothesis] | None]:
        options = _SEARCHES[search.kind() or ""][1](search)
        if len(given) >= _BULK and not self.layouts.known():
            self._measure(given, longest, options)
        layout = self.layouts.chosen(bulk=len(given) > 1)
        found = self._search(self._at(layout), given, longest, options)
        rows = [self._hypotheses(some, limit, search) for some, limit in zip(found, longest, strict=True)]
        if detail:
            self._add_detail(self._at(layout), given, rows)
        return rows

    def describe(self) -> str:
        layout = self.layouts.chosen(bulk=True)
        return f"{self.name}, {layout.precision}, {layout.workers} × {layout.threads} threads"

    # How it is driven

    def _at(self, layout: Layout) -> Any:
        if layout not in self._loaded:
            self._loaded[layout] = self.model.load(self.folder, layout)
        return self._loaded[layout]

    def _measure(
        self, given: Sequence[Sequence[int]], longest: Sequence[int], options: dict[str, Any]
    ) -> None:
        step = len(given) // _BULK
        some, limits = given[::step][:_BULK], longest[::step][:_BULK]

        def bulk(layout: Layout) -> None:
            self._search(self._at(layout), some, limits, options)

        def alone(layout: Layout) -> None:
            for row in range(0, len(some), 8):
                self._search(self._at(layout), some[row : row + 1], limits[row : row + 1], options)

        self.layouts.measure(bulk, alone)
        keep = {self.layouts.chosen(bulk=True), self.layouts.chosen(bulk=False)}
        self._loaded = {layout: engine for layout, engine in self._loaded.items() if layout in keep}

    def _search(
        self, engine: Any, given: Sequence[Sequence[int]], longest: Sequence[int], options: Mapping[str, Any]
    ) -> list[list[Found] | None]:
        """Batches of like length, the longest first; it takes as many at once as it has workers."""
        found: list[list[Found] | None] = [None] * len(given)
        waiting: list[tuple[list[int], Any]] = []
        for rows in reversed(list(self._batches(given, longest))):
            texts = [self.model.names(given[row]) for row in rows]
            limit = max(longest[row] for row in rows)
            waiting.append((rows, self.model.ask(engine, texts, limit, options)))
        for rows, futures in waiting:
            for row, future in zip(rows, futures, strict=True):
                found[row] = [Found(*one) for one in self.model.answer(future.result())]
        return found

    def _batches(self, given: Sequence[Sequence[int]], longest: Sequence[int]) -> Iterator[list[int]]:
        most = self.model.positions
        rows = [row for row, ids in enumerate(given) if len(ids) <= most and longest[row] <= most]
        if rows:
            lengths = np.array([len(given[row]) for row in rows], dtype=np.int64)
            for batch in shares(lengths, self.layouts.chosen(bulk=True).workers):
                yield [rows[index] for index in batch]

    def _hypotheses(
        self, found: list[Found] | None, longest: int, search: SearchSpec
    ) -> list[Hypothesis] | None:
        """None where the search reached its greatest length: there every program has rules of its own."""
        end = self.model.end
        if not found or any(not one.tokens or one.tokens[-1] != end for one in found):
            return None
        if any(len(one.tokens) > longest for one in found):  # it went on for the sake of longer neighbours
            return None
        return [
            Hypothesis(
                self.model.ids(one.tokens[:-1]),
                True,
                one.score * len(one.tokens) ** search.alpha,
                one.score,
                [],
            )
            for one in found[: search.answers]
        ]

    def _add_detail(
        self, engine: Any, given: Sequence[Sequence[int]], rows: list[list[Hypothesis] | None]
    ) -> None:
        """Probabilities of single tokens: what it found is read once more."""
        places = [(row, place) for row, some in enumerate(rows) for place in range(len(some or ()))]
        texts = [self.model.names(given[row]) for row, _ in places]
        written = [self.model.names_written(rows[row][place].tokens) for row, place in places]  # type: ignore[index]
        for (row, place), own in zip(places, self.model.judge(engine, texts, written), strict=True):
            some = rows[row]
            assert some is not None
            some[place] = some[place].detailed(own)


def shares(lengths: np.ndarray, workers: int) -> list[list[int]]:
    """Rows of like length together, the shortest first: no worker shall wait long for another at the end.

    What is little is dealt out evenly, a batch for each worker, or two where both are still large. Cut by a
    budget, the first batch would hold nearly everything and the last one next to nothing.
    """
    tokens = int(lengths.sum())
    if tokens >= 2 * workers * BUDGET:
        bulk = evaluation_batches(lengths[:, None], max(BUDGET, int(lengths.max())))
        return [batch.tolist() for batch in bulk]
    wanted = 2 * workers if tokens >= 2 * workers * ENOUGH else workers
    count = max(1, min(wanted, tokens // LEAST))
    order = np.argsort(lengths, kind="stable")
    middles = np.cumsum(lengths[order]) - lengths[order] / 2
    dealt = [order[middles // (tokens / count) == number].tolist() for number in range(count)]
    return [rows for rows in dealt if rows]


# ---------------------------------------------------------------- searches, by kind


def _unknown_search(search: SearchSpec) -> str | None:
    return f"it knows no search of kind {search.kind()!r} that gives the same answers"


def _no_options(search: SearchSpec) -> dict[str, Any]:
    raise NotImplementedError


def _any_greedy(search: SearchSpec) -> str | None:
    return None


def _greedy(search: SearchSpec) -> dict[str, Any]:
    return {"beam_size": 1, **_common(search)}


def _same_beam(search: Any) -> str | None:
    kind = search.stop.kind()
    return None if kind == "enough_finished" else f"its beams stop by another rule than {kind!r}"


def _beam(search: Any) -> dict[str, Any]:
    finished = search.size if search.stop.finished is None else search.stop.finished
    # All that finished are asked for: their lengths tell how far the search went.
    return {
        "beam_size": search.size,
        "num_hypotheses": search.size,
        "patience": finished / search.size,
        **_common(search),
    }


def _common(search: SearchSpec) -> dict[str, Any]:
    return {"length_penalty": search.alpha or _ALMOST_NO_PENALTY}


_SEARCHES: dict[str, tuple[Callable[[Any], str | None], Callable[[Any], dict[str, Any]]]] = {
    "greedy": (_any_greedy, _greedy),
    "beam": (_same_beam, _beam),
}
"""Whether it does such a search as we do, and how it is told."""


# ---------------------------------------------------------------- what is served


class Served:
    """What differs between the kinds of models that it serves."""

    def __init__(self, read: Tokenizer, written: Tokenizer, positions: int) -> None:
        self.positions = positions
        """Tokens that it can read, and write."""
        self._read, self._written = names_of(read), names_of(written)
        self.end, self.read_end = self._written[written.end], read.end

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._written)}

    def names(self, ids: Sequence[int]) -> list[str]:
        return [self._read[number] for number in ids]

    def names_written(self, ids: Sequence[int]) -> list[str]:
        return [self._written[number] for number in ids]

    def ids(self, names: Sequence[str]) -> list[int]:
        numbers = self._numbers
        return [numbers[name] for name in names]

    def load(self, folder: Path, layout: Layout) -> Any:
        raise NotImplementedError

    def ask(self, engine: Any, texts: list[list[str]], longest: int, options: Mapping[str, Any]) -> list[Any]:
        """One future for each text."""
        raise NotImplementedError

    def answer(self, result: Any) -> Iterator[tuple[list[str], float]]:
        raise NotImplementedError

    def judge(self, engine: Any, texts: list[list[str]], written: list[list[str]]) -> list[list[float]]:
        """Log-probabilities of the tokens written after each text, and of the end."""
        raise NotImplementedError


class Translators(Served):
    def load(self, folder: Path, layout: Layout) -> Any:
        import ctranslate2

        return ctranslate2.Translator(str(folder), **layout.options())

    def ask(self, engine: Any, texts: list[list[str]], longest: int, options: Mapping[str, Any]) -> list[Any]:
        futures: list[Any] = engine.translate_batch(
            texts,
            asynchronous=True,
            max_input_length=0,
            max_decoding_length=longest,
            min_decoding_length=0,
            return_end_token=True,
            return_scores=True,
            **options,
        )
        return futures

    def answer(self, result: Any) -> Iterator[tuple[list[str], float]]:
        return zip(result.hypotheses, result.scores, strict=True)

    def judge(self, engine: Any, texts: list[list[str]], written: list[list[str]]) -> list[list[float]]:
        scored = engine.score_batch(
            texts, written, max_batch_size=BUDGET, batch_type="tokens", max_input_length=0
        )
        return [list(one.log_probs) for one in scored]
