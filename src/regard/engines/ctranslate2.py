"""CTranslate2 (OpenNMT): searches and encoders of Transformers in C++."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.sequences import Tokens
from regard.engines.budgets import Budgets
from regard.engines.company import Company
from regard.engines.layout import Layout, Layouts
from regard.engines.loaded import Loaded
from regard.engines.served import Batch, Served
from regard.search.hypotheses import Hypothesis, normalise
from regard.search.search import SearchSpec
from regard.tasks.answers import Detail
from regard.tasks.engine import LAST
from regard.tasks.task import NO_WISHES, Wishes

NAME = "ctranslate2"
_ALMOST_NO_PENALTY = 1e-9
"""Of length; at none at all it would stop by a rule of its own."""
_BULK = 48
"""Lines from which on it pays to find out how this machine is used best …"""
_TRIED = 32
"""… from so many steps of each: texts may go on much longer."""


class Told(NamedTuple):
    """How it is told to search. Whoever asks line by line asks the same way again: it is put into its words
    once."""

    search: SearchSpec
    detail: Detail
    options: dict[str, Any]
    beam: int
    steady: bool
    answers: int
    alpha: float


class UnderWay(NamedTuple):
    """What it is searching."""

    batches: list[tuple[Batch, list[Any]]]
    """With a future for each row."""
    beam: int
    budget: int
    """Tokens that it was given together."""
    began: float

    def wait(self) -> None:
        for _, futures in self.batches:
            for future in futures:
                future.result()


class Searching:
    """A model that writes, several batches side by side."""

    name = NAME

    def __init__(self, folder: Callable[[], Path], model: Served, layouts: Layouts, budgets: Budgets) -> None:
        self.model, self.layouts, self.budgets = model, layouts, budgets
        self._loaded = Loaded(folder, model.load)
        self._company = Company()
        self._alone: list[tuple[Sequence[int], int]] = []
        """Lines that were asked one by one until it is known how this machine is used best …"""
        self._alone_beam = 0
        """… with beams of this size."""
        self._told: Told | None = None
        self._refused: tuple[SearchSpec, str | None] | None = None

    def describe(self, search: SearchSpec) -> str:
        layout = self.layouts.chosen(_options(search)["beam_size"], bulk=True)
        return ", ".join(filter(None, (self.name, layout.describe(), self.model.manner)))

    def refusal(self, search: SearchSpec, wishes: Wishes, keep: bool) -> str | None:
        if keep:
            return "it cannot show its search"
        if wishes is not NO_WISHES and wishes != NO_WISHES:
            return "it knows no wishes about words"
        if self._refused is None or self._refused[0] is not search:
            self._refused = search, _refusal(search)
        return self._refused[1]

    def search(
        self,
        given: Sequence[Sequence[int]],
        longest: Sequence[int],
        search: SearchSpec,
        detail: Detail,
        share: float = 1.0,
    ) -> Iterator[tuple[int, list[Hypothesis] | None]]:
        told = self._tell(search, detail)
        if not self.layouts.known(told.beam):
            self._find_out(given, longest, told)
        # One line among others is one of many: it shall not wait for the worker of those that come alone.
        bulk = len(given) > 1 or share < 1
        layout = self.layouts.chosen(told.beam, bulk)
        together = not bulk and layout.threads > 1
        if together:
            layout = self._company.layout(layout)
        engine = self._loaded.at(layout)
        answered, to_judge = 0, dict[int, list[Hypothesis]]()
        under_way = self._ask(engine, given, longest, told, share)
        for batch, futures in under_way.batches:
            for row, future in zip(batch.rows, futures, strict=True):
                result = future.result()
                if together:
                    self._company.took(layout, len(given[row]), time.perf_counter() - under_way.began)
                some = self._hypotheses(result, longest[row], told)
                if some is None or detail == "text" or not any(_is_to_be_judged(one, detail) for one in some):
                    yield row, some
                else:
                    to_judge[row] = some
            answered += len(batch.rows)
        if share == 1 and answered > 1:
            self._learn(under_way, given)
        if to_judge:
            self._judge(engine, given, to_judge, search.alpha, detail)
            yield from to_judge.items()
        if answered < len(given):  # it has no room for the others
            for row in set(range(len(given))).difference(*(batch.rows for batch, _ in under_way.batches)):
                yield row, None

    def _find_out(self, given: Sequence[Sequence[int]], longest: Sequence[int], told: Told) -> None:
        """Whoever asks line by line asks for much, too, after a while."""
        if len(given) == 1:
            if told.beam != self._alone_beam:
                self._alone, self._alone_beam = [], told.beam
            self._alone.append((given[0], longest[0]))
            if len(self._alone) < _BULK:
                return
            given, longest = zip(*self._alone, strict=True)
            self._alone = []
        if len(given) >= _BULK:
            self._measure(given, longest, told)

    def _measure(self, given: Sequence[Sequence[int]], longest: Sequence[int], told: Told) -> None:
        step = len(given) // _BULK
        some = given[::step][:_BULK]
        limits = [min(limit, _TRIED) for limit in longest[::step][:_BULK]]

        def bulk(layout: Layout) -> None:
            self._ask(self._loaded.at(layout), some, limits, told).wait()

        def alone(layout: Layout) -> None:
            engine = self._loaded.at(layout)
            for row in range(0, len(some), 4):
                self._ask(engine, some[row : row + 1], limits[row : row + 1], told).wait()

        self.layouts.measure(told.beam, bulk, alone)
        self._loaded.keep(self.layouts.in_use())

    def _ask(
        self,
        engine: Any,
        given: Sequence[Sequence[int]],
        longest: Sequence[int],
        told: Told,
        share: float = 1.0,
    ) -> UnderWay:
        """Batches of like length, the longest first; it takes as many at once as it has workers. Rows that it
        has no room for are in none."""
        began, model = time.perf_counter(), self.model
        workers = budget = 1  # a row alone is a batch, whatever one may hold
        if len(given) > 1:
            workers = max(1, round(share * self.layouts.chosen(told.beam, bulk=True).workers))
            budget = self.budgets.of(told.beam, len(given) if share == 1 else 0)
        asked = list[tuple[Batch, list[Any]]]()
        for batch in reversed(model.batches(given, longest, told.steady, told.beam, workers, budget)):
            texts = [model.names(given[row]) for row in batch.rows]
            asked.append((batch, model.ask(engine, texts, batch.limit, told.options)))
        return UnderWay(asked, told.beam, budget, began)

    def _tell(self, search: SearchSpec, detail: Detail) -> Told:
        told = self._told
        if told is None or told.search is not search or told.detail != detail:
            options = _options(search)
            # Where each step takes the best token, how probable it is costs a pass over all of them.
            options["return_scores"] = detail != "text" or not search.steady
            beam, answers = options["beam_size"], search.answers
            told = self._told = Told(search, detail, options, beam, search.steady, answers, search.alpha)
        return told

    def _learn(self, under_way: UnderWay, given: Sequence[Sequence[int]]) -> None:
        """How long it took with batches of this size, unless it is known which is best."""
        if not self.budgets.known(under_way.beam):
            lengths = [len(given[row]) for batch, _ in under_way.batches for row in batch.rows]
            seconds = time.perf_counter() - under_way.began
            self.budgets.took(under_way.beam, under_way.budget, len(lengths), sum(lengths), seconds)

    def _hypotheses(self, result: Any, longest: int, told: Told) -> list[Hypothesis] | None:
        """Among what ended in time, a beam that reached its greatest length has what was cut off, or went on
        for the sake of its neighbours. We take what ended; None where it is too little, for more of it may
        have been left out for the others."""
        end, some = self.model.end, list[Hypothesis]()
        scores: Iterable[float] = result.scores or repeat(math.nan)
        for names, score in zip(self.model.found(result), scores, strict=False):
            length = len(names)
            ended = 0 < length <= longest and names[-1] == end
            if ended or (names and told.steady):
                written = self.model.ids(names[:-1] if ended else names[:longest])
                if length > longest:  # how probable is what is left of it must be asked
                    score = math.nan
                some.append(Hypothesis(written, ended, score * length**told.alpha, score, []))
                if len(some) == told.answers:
                    return some
        return None

    def _judge(
        self,
        engine: Any,
        given: Sequence[Sequence[int]],
        rows: Mapping[int, list[Hypothesis]],
        alpha: float,
        detail: Detail,
    ) -> None:
        """Probabilities of single tokens: what it found is read once more."""
        places = [
            (row, some, place)
            for row, some in rows.items()
            for place, one in enumerate(some)
            if _is_to_be_judged(one, detail)
        ]
        texts = [self.model.names(given[row]) for row, _, _ in places]
        written = [self.model.names_written(some[place].tokens) for _, some, place in places]
        ended = [some[place].finished for _, some, place in places]
        judged = self.model.judge(engine, texts, written, ended)
        for (_, some, place), own in zip(places, judged, strict=True):
            known, sure = some[place], some[place].detailed(own)
            again = normalise(sure.log_prob, len(own), alpha)
            known_for_sure = self.model.weighs_all and not math.isnan(known.score)
            some[place] = replace(sure, score=known.score if known_for_sure else again)


def _is_to_be_judged(found: Hypothesis, detail: Detail) -> bool:
    return detail == "tokens" or (detail == "scores" and math.isnan(found.log_prob))


class Reading:
    """A model that reads: the states after its last layer. Nothing of a request is kept."""

    name = NAME
    budget = 768
    """What is made of so many tokens stays near a core."""

    def __init__(self, folder: Callable[[], Path], bulk: Layout, alone: Layout) -> None:
        self.bulk, self.alone = bulk, alone
        self._loaded = Loaded(folder, _load_encoder)

    def describe(self, search: SearchSpec) -> str:
        return f"{self.name}, {self.bulk.describe()}"

    def refusal(self, layer: int | None) -> str | None:
        asked = "all layers" if layer is None else f"layer {layer}"
        return None if layer == LAST else f"it gives the states of its last layer, not of {asked}"

    def read(self, batches: Iterable[Tokens]) -> Iterator[Float[Tensor, "batch time width"]]:
        """One batch has all threads; of several each worker reads one, and one more is made ready."""
        waiting = iter(batches)
        first = list(islice(waiting, 2))
        if len(first) < 2:
            yield from (self._states(self._loaded.at(self.alone), tokens) for tokens in first)
            return
        engine, under_way = self._loaded.at(self.bulk), deque[Future[Tensor]]()
        with ThreadPoolExecutor(self.bulk.workers) as workers:
            for tokens in chain(first, waiting):
                under_way.append(workers.submit(self._states, engine, tokens))
                if len(under_way) > self.bulk.workers:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()

    def _states(self, engine: Any, tokens: Tokens) -> Float[Tensor, "batch time width"]:
        import ctranslate2

        ids, lengths = (
            ctranslate2.StorageView.from_array(np.ascontiguousarray(part.numpy(), dtype=np.int32))
            for part in (tokens.ids, tokens.real.sum(1))
        )
        segments = None if tokens.segments is None else tokens.segments.tolist()
        found = engine.forward_batch(ids, lengths, segments)
        return torch.from_numpy(np.array(found.last_hidden_state))


def _load_encoder(folder: Path, layout: Layout) -> Any:
    import ctranslate2

    return ctranslate2.Encoder(str(folder), **layout.options())


# ---------------------------------------------------------------- searches, by kind


def _refusal(search: SearchSpec) -> str | None:
    """Why it would not find the same; None where it does."""
    if search.constraints:
        return f"it is not given the constraint {search.constraints[0].kind()!r}"
    if search.shortest:
        return f"it counts answers of at least {search.shortest} tokens otherwise"
    if (kind := search.kind() or "") not in _SEARCHES:
        return f"it knows no search of kind {search.kind()!r} that gives the same answers"
    return _SEARCHES[kind].refusal(search)


class KnownSearch(NamedTuple):
    """A kind of search that it does, too."""

    refusal: Callable[[Any], str | None]
    """Why it would find something else than we do; None when it finds the same."""
    options: Callable[[Any], dict[str, Any]]
    """How it is told."""


def _options(search: SearchSpec) -> dict[str, Any]:
    """In its own words."""
    return _SEARCHES[search.kind() or ""].options(search)


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


_SEARCHES: dict[str, KnownSearch] = {
    "greedy": KnownSearch(_any_greedy, _greedy),
    "beam": KnownSearch(_same_beam, _beam),
}
