"""Everything a run can do, over HTTP: any task, with n-best lists, probabilities, alignment and traces."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from regard.apps.serving.asking import Asking, Piece, own_numbers
from regard.apps.serving.batching import Work
from regard.apps.serving.refusals import Refusal, refusal_of
from regard.apps.serving.shelf import Desk
from regard.apps.serving.strict import Body, question
from regard.apps.serving.works import Answering, Looking
from regard.tasks.answers import Answer, Detail

Count = Annotated[int, Field(ge=1)]


class RunRequest(Body):
    """What ``regard run`` takes as options; what is not given is the run's own."""

    model: str | None = None
    """May be left out where one run is served."""
    text: str | None = None
    texts: list[str] | None = None
    beam: Count | None = None
    greedy: bool = False
    temperature: Annotated[float, Field(gt=0, le=100)] | None = None
    top_k: Count | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    best: Count | None = None
    """Answers to each text."""
    tokens: Count | None = None
    """Longest continuation of a prompt."""
    prefix: str = ""
    forbid: list[str] = Field(default_factory=list)
    require: list[str] = Field(default_factory=list)
    stop: list[str] = Field(default_factory=list)
    no_repeat: Count | None = None
    repetition_penalty: Annotated[float, Field(ge=1, le=100)] | None = None
    truncate: bool = False
    """Cut what is too long instead of refusing it."""
    detail: bool = True
    """Probabilities of single tokens; without them answers may come faster."""
    alignment: bool = False
    """Which source token each piece of the answer rests on."""
    trace: bool = False
    """Every layer and head."""
    tree: bool = False
    """The whole search."""
    stream: bool = False
    """Server-sent events: pieces of text as they are written, at last the whole."""
    timeout: Annotated[float, Field(gt=0, le=3600)] | None = None
    """Seconds after which the answer is of no use any more."""


def routes(asking: Asking) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["Regard"])

    @question(router, "/run")
    async def run(request: Request, asked: RunRequest) -> Response:
        """Texts in, answers out, as `regard run --json` gives them."""
        if (asked.text is None) == (asked.texts is None):
            raise Refusal(400, "give either text or texts", field="texts")
        texts = [asked.text] if asked.text is not None else asked.texts or []
        if asked.trace or asked.alignment:
            asking.few(len(texts), "texts that are looked into", 16)
        draws = any(value is not None for value in (asked.temperature, asked.top_k, asked.top_p))
        numbers = own_numbers(len(texts)) if draws and asked.seed is None else None

        def work(desk: Desk) -> Work:
            return _answering(asking, desk, asked)

        if asked.stream:
            if asked.trace or asked.alignment:
                raise Refusal(
                    400, "a stream shows text: ask for alignment and trace without it", field="stream"
                )
            desk, _, coming = await asking.pieces(asked.model, work, texts, numbers, asked.timeout)
            return StreamingResponse(_events(desk.name, coming), media_type="text/event-stream")
        desk, _, answers = await asking.results(request, asked.model, work, texts, numbers, asked.timeout)
        found = [answer.to_dict() for answer in answers]
        if asked.trace or asked.alignment:
            written = [place for place, answer in enumerate(answers) if answer.candidates]
            seen = {}
            if written:
                # By the very desk that wrote, even if the run has been loaded again since.
                looking = Looking(desk.run, tuple(answers[place].text for place in written), asked.trace)
                sources = [texts[place] for place in written]
                _, _, looked = await asking.results(
                    request, desk.name, lambda _: looking, sources, None, asked.timeout
                )
                seen = dict(zip(written, looked, strict=True))
            for place, one in enumerate(found):
                one["alignment"], trace = seen.get(place, (None, None))
                if asked.trace:
                    one["trace"] = trace
        reply = {"model": desk.name, "task": desk.run.spec.task.kind(), "answers": found}
        return Response(_json(reply), media_type="application/json")

    return router


def _answering(asking: Asking, desk: Desk, asked: RunRequest) -> Answering:
    repetition = [
        {"kind": kind, name: value}
        for kind, name, value in (
            ("no_repeat", "length", asked.no_repeat),
            ("repetition_penalty", "factor", asked.repetition_penalty),
        )
        if value is not None
    ]
    search = asking.search(
        desk,
        greedy=asked.greedy,
        beam=asked.beam,
        best=asked.best,
        tokens=asked.tokens,
        repetition=repetition,
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        seed=asked.seed,
    )
    wishes = asking.wishes(asked.stop, asked.prefix, asked.forbid, asked.require)
    detail: Detail = "tokens" if asked.detail else "scores"
    return Answering(desk.run, search, wishes, asked.truncate, asked.tree, detail, streams=asked.stream)


async def _events(model: str, coming: AsyncIterator[Piece | list[Answer]]) -> AsyncIterator[str]:
    try:
        async for item in coming:
            if isinstance(item, Piece):
                yield f"data: {_json({'place': item.place, 'piece': item.text})}\n\n"
            else:
                yield f"data: {_json({'model': model, 'answers': [answer.to_dict() for answer in item]})}\n\n"
    except Exception as error:  # the status is sent already: the stream itself must tell
        yield f"data: {_json(refusal_of(error).content('/v1'))}\n\n"


def _json(value: Any) -> str:
    """JSON has no infinity: the log-probability of what cannot be is null."""
    return pydantic_core.to_json(value, inf_nan_mode="null").decode()
