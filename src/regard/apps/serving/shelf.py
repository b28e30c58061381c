"""Runs by name: loaded when they are first asked for, and again when their folder changes.

A request is answered by the weights that were there when it came. A run whose folder has changed is loaded
beside the old one; then new requests go to the new one, and the old one finishes what it has accepted.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from regard.apps.serving.batching import Batcher, Work
from regard.apps.serving.metrics import Metrics
from regard.apps.serving.refusals import Refusal
from regard.apps.session import Run
from regard.core.errors import RegardError, UsageError, nearest
from regard.search.search import SearchSpec
from regard.tasks.task import NO_WISHES, Asked, Task
from regard.training.run_folder import MODEL, RECORD, SHORTLIST, RunFolder

log = logging.getLogger("regard.serving")
_WARMING_TEXTS, _WARMING_TOKENS = 64, 12

State: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""Which files a folder holds, as far as that can be seen without reading them."""


@dataclass(frozen=True)
class Offer:
    """One run that is served."""

    name: str
    folder: Path
    languages: tuple[str, str] | None = None
    """From which to which, for those who translate."""


class Desk:
    """A loaded run and the thread that answers for it."""

    def __init__(self, name: str, run: Run, state: State, batcher: Batcher) -> None:
        self.name, self.run, self.state, self.batcher = name, run, state, batcher
        self.since = int(time.time())
        self.tokenizer = next(iter(run.lexicon.values()))
        self.search = lru_cache(maxsize=256)(self._search)
        self._works: dict[Hashable, Work] = {}

    def once(self, name: Hashable, make: Callable[[], Work]) -> Work:
        """What few names ask for again and again is made once for each."""
        if name not in self._works:
            self._works[name] = make()
        return self._works[name]

    def _search(self, kind: str | None, changes: tuple[tuple[str, object], ...]) -> SearchSpec:
        """The run's own search with some fields changed, or another one with what all have in common."""
        own, fields = self.run.spec.search, dict(changes)
        if "constraints" in fields:
            fields["constraints"] = json.loads(str(fields["constraints"]))
        if kind is None or own.kind() == kind:
            return SearchSpec.from_dict(own.to_dict() | fields, where="search")
        common = {name: value for name, value in own.to_dict().items() if name in SearchSpec.model_fields}
        return SearchSpec.from_dict(common | {"kind": kind} | fields, where="search")


@dataclass
class _Place:
    offer: Offer
    desk: Desk | None = None
    used: float = 0.0
    refused: State | None = None
    """A state of the folder that could not be loaded; it is not tried again."""
    loading: asyncio.Lock = field(default_factory=asyncio.Lock)


class Shelf:
    def __init__(
        self,
        offers: Sequence[Offer],
        load: Callable[[Path], Run],
        batcher: Callable[[str], Batcher],
        metrics: Metrics,
        loaded: int | None = None,
    ) -> None:
        """``loaded`` is how many runs may be in memory at once; the one not used for longest goes."""
        self.offers: Mapping[str, Offer] = {offer.name: offer for offer in offers}
        if len(self.offers) < len(offers):
            raise UsageError("two runs have one name: give them others, as in one=DIR two=DIR")
        for offer in offers:
            RunFolder.open(offer.folder)
        self._places = {offer.name: _Place(offer) for offer in offers}
        self._load, self._batcher, self._metrics, self._most = load, batcher, metrics, loaded

    @property
    def desks(self) -> dict[str, Desk]:
        """What is loaded."""
        return {name: place.desk for name, place in self._places.items() if place.desk is not None}

    async def desk(self, name: str | None) -> Desk:
        """The run of this name; where only one is served, no name is needed."""
        if name is None or name == "":
            if len(self._places) > 1:
                raise Refusal(400, f"name a model{nearest('', self._places)}", field="model")
            name = next(iter(self._places))
        place = self._places.get(name)
        if place is None:
            raise Refusal(
                404, f"there is no model {name[:100]!r}{nearest(name[:100], self._places)}",
                code="model_not_found", field="model",
            )  # fmt: skip
        place.used = time.monotonic()
        if place.desk is None:
            async with place.loading:
                if place.desk is None:
                    place.desk = await self._open(place.offer)
                    self._make_room()
        return place.desk

    async def load_all(self) -> None:
        for name in self._places:
            await self.desk(name)

    async def look_for_changes(self) -> None:
        """Load again what has changed; what cannot be loaded stays as it was."""
        for place in self._places.values():
            if place.desk is None:
                continue
            state = state_of(place.offer.folder)
            if state in (place.desk.state, place.refused) or not _complete(state):
                continue
            async with place.loading:
                try:
                    new = await self._open(place.offer)
                except RegardError as error:
                    log.warning("%s has changed but cannot be loaded: %s", place.offer.name, error)
                    self._metrics.reloads[place.offer.name, "refused"].inc()
                    place.refused = state
                    continue
                old, place.desk = place.desk, new
                if old is not None:
                    old.batcher.close()
            self._metrics.reloads[place.offer.name, "done"].inc()
            log.info("%s has changed and was loaded again", place.offer.name)

    async def keep_looking(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await self.look_for_changes()
            except Exception:  # must not end what is asked for every second
                log.exception("looking for changed runs failed")

    def close(self, seconds: float) -> None:
        """Let every thread finish what was accepted."""
        desks = self.desks.values()
        for desk in desks:
            desk.batcher.close()
        end = time.monotonic() + seconds
        for desk in desks:
            desk.batcher.join(max(0.0, end - time.monotonic()))

    async def _open(self, offer: Offer) -> Desk:
        begin = time.monotonic()
        state = state_of(offer.folder)
        try:
            run = await asyncio.to_thread(self._ready, offer.folder)
        except RegardError as error:
            log.warning("%s cannot be loaded: %s", offer.name, error)
            raise
        log.info("%s loaded from %s in %.1f s", offer.name, offer.folder, time.monotonic() - begin)
        return Desk(offer.name, run, state, self._batcher(offer.name))

    def _ready(self, folder: Path) -> Run:
        """Loaded, and with everything that is made only once: the first request shall not wait for it."""
        run = self._load(folder)
        task = run.task()
        if task.refusal(NO_WISHES, keep=False) is None:
            _warm_up(task, run)
        return run

    def _make_room(self) -> None:
        loaded = [place for place in self._places.values() if place.desk is not None]
        for place in sorted(loaded, key=lambda one: one.used)[: len(loaded) - (self._most or len(loaded))]:
            assert place.desk is not None
            place.desk.batcher.close()
            place.desk = None
            log.info("%s put away: others are in use", place.offer.name)


def _warm_up(task: Task, run: Run) -> None:
    """An engine converts and loads its model with the first texts, and finds out with as many as these how it
    is driven best on this machine: not while somebody waits, nor with two batches at a time."""
    tokenizer = next(iter(run.lexicon.values()))
    first = max(tokenizer.pad, tokenizer.unknown, tokenizer.begin, tokenizer.end) + 1
    spelled = tokenizer.decode([number % tokenizer.size for number in range(first, first + _WARMING_TOKENS)])
    try:
        task.answer(Asked([spelled] * _WARMING_TEXTS, truncate=True, detail="text"))
    except RegardError as error:  # a run that reads more than plain lines is loaded by its first request
        log.info("not warmed up: %s", error)


def state_of(folder: Path) -> State:
    found = []
    try:
        for path in sorted(folder.iterdir()):
            if path.name in (RECORD, MODEL, SHORTLIST) or path.name.endswith(
                (".tokenizer.json", ".labels.json", "tokenizer.json")
            ):
                stat = path.stat()
                found.append((path.name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    except OSError:  # changes while we look: the next look will see what it has become
        return ()
    return tuple(found)


def _complete(state: State) -> bool:
    names = {name for name, *_ in state}
    return RECORD in names and MODEL in names
