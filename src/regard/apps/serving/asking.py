"""From a request to results: limits, a job for the right run, waiting for no longer than allowed."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pydantic_core
from starlette.requests import Request

from regard.apps.serving.batching import ClosedError, Job, QueueFullError, Work
from regard.apps.serving.limits import Limits
from regard.apps.serving.metrics import Metrics
from regard.apps.serving.post import Over, Post
from regard.apps.serving.refusals import Refusal, refusal_of
from regard.apps.serving.shelf import Desk, Shelf
from regard.search.search import SearchSpec
from regard.tasks.task import NO_WISHES, Wishes

_AT_ONCE = 20_000
"""Characters that are counted in tokens without leaving the event loop."""
_CHARACTERS = 4
"""Of a token, about: how much is done at once need not be exact."""
_MOST_TOKENS = 33
"""Of a character: a byte each of what it may become where a tokenizer writes it out (U+FDFA in NFKC)."""
_LOOK_AFTER = 0.25
"""Seconds after which it is watched whether who asked still waits."""


class Piece(NamedTuple):
    """Some more of the answer to one text."""

    place: int
    text: str


class Asking:
    """What every interface asks through."""

    def __init__(self, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
        self.shelf, self.limits, self.metrics = shelf, limits, metrics
        self._post = Post()

    async def results(
        self,
        request: Request,
        model: str | None,
        work: Callable[[Desk], Work],
        texts: Sequence[str],
        numbers: Sequence[int] | None = None,
        seconds: float | None = None,
    ) -> tuple[Desk, Job, list[Any]]:
        """One result a text, unless the time is over or the client leaves first."""
        desk, job = await self._submit(model, work, texts, numbers)
        loop = asyncio.get_running_loop()
        over = Over(loop)
        job.future.add_done_callback(lambda _: self._post.tell(over))
        leaving = _Leaving(request, over)
        late = loop.call_later(self._seconds(seconds), over.settle)
        try:
            await over.waiting
            if job.future.done():
                return desk, job, job.future.result()
        except Exception as error:
            raise refusal_of(error) from error
        finally:
            late.cancel()
            leaving.forget()
            job.future.cancel()  # leaves the queue, or the batch
        if leaving.seen:
            raise Refusal(499, "the client has left")  # for those who count; nobody reads it
        raise self._too_late(seconds)

    async def pieces(
        self,
        model: str | None,
        work: Callable[[Desk], Work],
        texts: Sequence[str],
        numbers: Sequence[int] | None = None,
        seconds: float | None = None,
    ) -> tuple[Desk, Job, AsyncIterator[Piece | list[Any]]]:
        """Pieces as they are written, at last the results; what is refused is refused before any."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[Piece | None] = asyncio.Queue()

        def tell(item: Piece | None) -> None:
            try:
                loop.call_soon_threadsafe(heard.put_nowait, item)
            except RuntimeError:  # the server has stopped meanwhile
                return

        begin = loop.time()
        desk, job = await self._submit(model, work, texts, numbers, lambda *told: tell(Piece(*told)))
        job.future.add_done_callback(lambda _: tell(None))
        until = begin + self._seconds(seconds)

        async def coming() -> AsyncIterator[Piece | list[Any]]:
            try:
                while (item := await asyncio.wait_for(heard.get(), until - loop.time())) is not None:
                    yield item
                yield job.future.result()
            except TimeoutError:
                raise self._too_late(seconds) from None
            except Exception as error:
                raise refusal_of(error) from error
            finally:
                job.future.cancel()

        rest = coming()
        first = await anext(rest)
        self.metrics.first_piece.observe(loop.time() - begin)
        return desk, job, _together(first, rest)

    def search(
        self,
        desk: Desk,
        *,
        greedy: bool = False,
        beam: int | None = None,
        best: int | None = None,
        tokens: int | None = None,
        exactly: bool = False,
        repetition: Iterable[dict[str, Any]] = (),
        **drawing: float | int | None,
    ) -> SearchSpec:
        """The run's own search with what was asked for. ``exactly`` bounds answers to ``tokens`` whatever the
        length of their source."""
        self.few(beam, "beam", self.limits.answers)
        self.few(best, "best", self.limits.answers)
        self.few(tokens, "tokens", self.limits.answer_tokens)
        drawn = {name: value for name, value in drawing.items() if value is not None}
        if greedy + bool(drawn) + (beam is not None) > 1:
            raise Refusal(400, "greedy, a beam and sampling exclude one another: ask for one of them")
        kind = "greedy" if greedy else "sampling" if drawn else "beam" if beam is not None else None
        own = desk.run.spec.search
        changes: dict[str, Any] = {"size": beam, "best": best, "longest_extra": tokens, **drawn}
        if best is not None and beam is None and (kind or own.kind()) == "beam":
            changes["size"] = max(best, own.to_dict().get("size", 1))  # type: ignore[type-var]
        if best is not None and (kind or own.kind()) == "greedy":
            if best > 1:
                raise Refusal(
                    400, "greedy search finds one answer: ask for a beam or for samples", field="best"
                )
            del changes["best"]
        if exactly and tokens is not None:
            changes["longest_ratio"] = 0.0
        if repetition := tuple(repetition):
            changes["constraints"] = pydantic_core.to_json(repetition).decode()
        named = tuple(sorted((name, value) for name, value in changes.items() if value is not None))
        return desk.search(kind, named)

    def wishes(
        self,
        stop: Sequence[str] = (),
        prefix: str = "",
        forbid: Sequence[str] = (),
        require: Sequence[str] = (),
    ) -> Wishes:
        if not (stop or prefix or forbid or require):
            return NO_WISHES
        for name, words in (("stop", stop), ("forbid", forbid), ("require", require), ("prefix", [prefix])):
            if len(words) > self.limits.words:
                raise Refusal(400, f"{name}: {len(words)} texts, at most {self.limits.words}", field=name)
            if max(map(len, words), default=0) > self.limits.word_characters:
                raise Refusal(400, f"{name}: at most {self.limits.word_characters} characters", field=name)
            if name != "prefix" and not all(words):
                raise Refusal(400, f"{name}: an empty text", field=name)
        return Wishes(prefix, tuple(forbid), tuple(require), tuple(stop))

    async def _submit(
        self,
        model: str | None,
        work: Callable[[Desk], Work],
        texts: Sequence[str],
        numbers: Sequence[int] | None,
        hear: Callable[[int, str], None] | None = None,
    ) -> tuple[Desk, Job]:
        self._check(texts)
        while True:
            try:
                desk = await self.shelf.desk(model)
                desk.batcher.check_room()
                costs = await self._costs(desk, texts)
                job = Job(work(desk), texts, costs, numbers or range(len(texts)), hear)
                desk.batcher.submit(job)
            except ClosedError:  # loaded again in this very moment
                continue
            except QueueFullError as full:
                said = "too many requests are waiting"
                raise Refusal(503, said, code="overloaded", retry_after=full.seconds) from None
            except Exception as error:
                raise refusal_of(error) from error
            self.metrics.read[desk.name,].inc(sum(map(len, texts)))
            return desk, job

    def _check(self, texts: Sequence[str]) -> None:
        if not texts:
            raise Refusal(400, "there is no text")
        self.few(len(texts), "texts", self.limits.texts, "too_many")
        longest = max(map(len, texts))
        self.few(longest, "characters of a text", self.limits.characters, "too_long")

    async def tokens(self, desk: Desk, texts: Sequence[str]) -> list[int]:
        """How many each text has."""

        def count() -> list[int]:
            return [len(ids) for ids in desk.tokenizer.encode_many(texts)]

        return count() if sum(map(len, texts)) < _AT_ONCE else await asyncio.to_thread(count)

    async def _costs(self, desk: Desk, texts: Sequence[str]) -> list[int]:
        """About how many tokens each text has: to count those of a short one takes half as long as all else
        that is done for a request here. Only where they may be too many they are counted."""
        if long := [text for text in texts if len(text) * _MOST_TOKENS > self.limits.tokens]:
            most = max(await self.tokens(desk, long))
            self.few(most, "tokens of a text", self.limits.tokens, "too_long")
        return [1 + len(text) // _CHARACTERS for text in texts]

    def few(self, value: int | None, what: str, most: int, code: str | None = None) -> None:
        if value is not None and value > most:
            raise Refusal(400, f"{what}: {min(value, 10**12):,} are too many, at most {most:,}", code=code)

    def _seconds(self, wanted: float | None) -> float:
        return self.limits.deadline if wanted is None else min(wanted, self.limits.deadline)

    def _too_late(self, wanted: float | None) -> Refusal:
        if wanted is not None and wanted < self.limits.deadline:
            return Refusal(408, f"not answered within the {wanted:g} s you gave", code="timeout")
        said = f"not answered within {self.limits.deadline:g} s"
        return Refusal(504, said, code="timeout", retry_after=self.limits.deadline / 4)


def own_numbers(count: int) -> list[int]:
    """For samples that shall differ from all others."""
    return [secrets.randbits(62) for _ in range(count)]


class _Leaving:
    """Whether a client has left. Most are answered before it is worth while to look."""

    def __init__(self, request: Request, over: Over) -> None:
        self._request, self._over = request, over
        self._looking: asyncio.Task[None] | None = None
        self._later = over.loop.call_later(_LOOK_AFTER, self._look)
        self.seen = False

    def forget(self) -> None:
        self._later.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _look(self) -> None:
        self._looking = self._over.loop.create_task(self._left())

    async def _left(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self.seen = True
        self._over.settle()


async def _together(
    first: Piece | list[Any], rest: AsyncIterator[Piece | list[Any]]
) -> AsyncIterator[Piece | list[Any]]:
    yield first
    async for item in rest:
        yield item
