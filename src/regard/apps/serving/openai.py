"""The interface of OpenAI's clients: models, completions, embeddings.

A prompt is whatever the run answers: a language model goes on with it, a translator translates it. Settings
that are not given are the run's own.
"""

import base64
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pydantic_core
from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from regard.apps.serving.asking import Asking, Piece, own_numbers
from regard.apps.serving.batching import Job, Work
from regard.apps.serving.refusals import Refusal, refusal_of
from regard.apps.serving.shelf import Desk
from regard.apps.serving.strict import Body, question
from regard.apps.serving.works import Answering, Embedding, Scoring
from regard.core.errors import UsageError
from regard.search.listening import cut_at
from regard.search.search import SearchSpec
from regard.tasks.answers import END, Answer, Candidate, Scored

Texts = Annotated[list[str], Field(min_length=1)]


class StreamOptions(Body):
    include_usage: bool = False


class CompletionRequest(Body):
    model: str | None = None
    """May be left out where one model is served."""
    prompt: str | Texts = ""
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    """0 is greedy search."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    n: Annotated[int, Field(ge=1)] = 1
    best_of: Annotated[int, Field(ge=1)] | None = None
    echo: bool = False
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    stop: str | list[str] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    repetition_penalty: Annotated[float, Field(ge=1, le=100)] | None = None
    suffix: str | None = None
    logit_bias: dict[str, float] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else self.stop or []


class EmbeddingRequest(Body):
    model: str | None = None
    input: str | Texts
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


def routes(asking: Asking) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["OpenAI"])

    @router.get("/models")
    async def models() -> dict[str, Any]:
        """The runs that are served."""
        return {"object": "list", "data": [_model(asking, name) for name in asking.shelf.offers]}

    @router.get("/models/{name}")
    async def model(name: str) -> dict[str, Any]:
        if name not in asking.shelf.offers:
            raise Refusal(404, f"there is no model {name[:100]!r}", code="model_not_found", field="model")
        return _model(asking, name)

    @question(router, "/completions")
    async def completions(request: Request, asked: CompletionRequest) -> Response:
        """How prompts go on, or what they are translated to; whole, or as it is written."""
        completion = Completion(asking, asked)
        if asked.stream:
            return await completion.stream()
        return Response(_json(await completion.whole(request)), media_type="application/json")

    @question(router, "/embeddings")
    async def embeddings(request: Request, asked: EmbeddingRequest) -> Response:
        """A vector for each text."""
        if asked.dimensions is not None:
            raise Refusal(
                400, "dimensions: vectors have the size that the model gives them", field="dimensions"
            )
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        desk, _, vectors = await asking.results(request, asked.model, _embedding, texts)
        data = [
            {"object": "embedding", "index": number, "embedding": _written(vector, asked.encoding_format)}
            for number, vector in enumerate(vectors)
        ]
        count = sum(await asking.tokens(desk, texts))
        usage = {"prompt_tokens": count, "total_tokens": count}
        reply = {"object": "list", "data": data, "model": desk.name, "usage": usage}
        return Response(_json(reply), media_type="application/json")

    return router


def _model(asking: Asking, name: str) -> dict[str, Any]:
    desk = asking.shelf.desks.get(name)
    created = 0 if desk is None else desk.since
    return {"id": name, "object": "model", "created": created, "owned_by": "regard"}


def _embedding(desk: Desk) -> Work:
    try:
        desk.run.embedder()
    except UsageError:
        raise Refusal(400, f"{desk.name} gives no embeddings", field="model") from None
    return Embedding(desk.run)


def _written(vector: np.ndarray, form: str) -> str | list[float]:
    little = np.asarray(vector, dtype="<f4")
    return base64.b64encode(little.tobytes()).decode() if form == "base64" else little.tolist()


class Completion:
    """One request for completions. Choice number c is drawn as line number c of an input would be."""

    def __init__(self, asking: Asking, asked: CompletionRequest) -> None:
        self.asking, self.asked = asking, asked
        self.id, self.created = f"cmpl-{uuid.uuid4().hex}", int(time.time())
        self.tries = max(asked.n, asked.best_of or asked.n)
        self.wishes = asking.wishes(stop=asked.stops)
        for name in ("suffix", "logit_bias", "presence_penalty", "frequency_penalty"):
            if getattr(asked, name):
                raise Refusal(400, f"{name} is not supported", field=name)
        if asked.best_of is not None and asked.best_of < asked.n:
            raise Refusal(400, f"best_of: {asked.best_of} is less than n: {asked.n}", field="best_of")
        if asked.stream and self.tries > asked.n:
            raise Refusal(400, "best_of cannot be streamed", field="best_of")
        asking.few(self.tries, "n", asking.limits.answers)

    async def whole(self, request: Request) -> dict[str, Any]:
        asked, prompts = self.asked, self.asked.prompts
        scored: list[Scored] = []
        if asked.echo and asked.logprobs is not None:
            _, _, scored = await self.asking.results(
                request, asked.model, lambda desk: Scoring(desk.run), prompts
            )
        if asked.max_tokens == 0:
            desk = await self.asking.shelf.desk(asked.model)
            nothing = Candidate("", [], [], 0.0, 0.0, finished=False)
            found = [[(nothing, Answer(prompt))] * asked.n for prompt in prompts]
        else:
            texts, numbers = await self._rows()
            desk, _, answers = await self.asking.results(request, asked.model, self._work, texts, numbers)
            found = self._found(answers, len(texts) // len(prompts))
        read = sum(await self.asking.tokens(desk, prompts))
        written, choices = 0, list[dict[str, Any]]()
        for place, candidates in enumerate(found):
            written += sum(len(candidate.pieces) for candidate, _ in candidates)
            for candidate, answer in candidates[: asked.n]:
                echoed = scored[place] if scored else None
                choices.append(self._choice(desk, len(choices), prompts[place], candidate, answer, echoed))
        return self._reply(desk.name, choices) | {"usage": _usage(read, written)}

    async def stream(self) -> Response:
        if self.asked.max_tokens == 0:
            raise Refusal(400, "max_tokens: there is nothing to stream", field="max_tokens")
        texts, numbers = await self._rows()
        desk, job, coming = await self.asking.pieces(self.asked.model, self._work, texts, numbers)
        return StreamingResponse(self._events(desk, job, coming), media_type="text/event-stream")

    async def _rows(self) -> tuple[list[str], list[int]]:
        """A text for each choice, or, of a search that ranks, for all choices of a prompt; and the numbers
        that samples are drawn by."""
        desk = await self.asking.shelf.desk(self.asked.model)
        copies = self.tries if self._search(desk).steady else 1
        texts = [prompt for prompt in self.asked.prompts for _ in range(copies)]
        return texts, own_numbers(len(texts)) if self.asked.seed is None else list(range(len(texts)))

    def _work(self, desk: Desk) -> Work:
        asked = self.asked
        return Answering(
            desk.run,
            self._search(desk),
            self.wishes,
            keep=bool(asked.logprobs),
            detail="scores" if asked.logprobs is None else "tokens",
            streams=asked.stream,
        )

    def _search(self, desk: Desk) -> SearchSpec:
        asked = self.asked
        greedy = asked.temperature == 0
        repetition = [{"kind": "repetition_penalty", "factor": asked.repetition_penalty}]

        def search(best: int | None) -> SearchSpec:
            return self.asking.search(
                desk,
                greedy=greedy,
                best=best,
                temperature=None if greedy else asked.temperature,
                top_p=None if greedy else asked.top_p,
                top_k=None if greedy else asked.top_k,
                seed=None if greedy else asked.seed,
                tokens=asked.max_tokens,
                exactly=True,
                repetition=repetition if asked.repetition_penalty else (),
            )

        found = search(None)
        return found if found.steady or self.tries == 1 else search(self.tries)

    def _found(self, answers: Sequence[Answer], copies: int) -> list[list[tuple[Candidate, Answer]]]:
        """The choices of each prompt; where there are more than were asked for, the most probable first."""
        found = []
        for begin in range(0, len(answers), copies):
            some = [(one, answer) for answer in answers[begin : begin + copies] for one in answer.candidates]
            if len(some) > self.asked.n:
                some.sort(key=lambda pair: -pair[0].score)
            found.append(some or [(Candidate("", [], [], 0.0, 0.0, finished=True), answers[begin])])
        return found

    async def _events(
        self, desk: Desk, job: Job, coming: AsyncIterator[Piece | list[Any]]
    ) -> AsyncIterator[str]:
        """Pieces as they come, and at the end of every choice what is left of it and why it ended."""
        said = dict[int, str]()
        try:
            if self.asked.echo:
                for index, text in enumerate(job.texts):
                    yield self._event(desk, _Said(index, text))
            async for item in coming:
                if isinstance(item, Piece):
                    said[item.place] = said.get(item.place, "") + item.text
                    yield self._event(desk, _Said(*item))
                    continue
                written, index = 0, 0
                for place, answer in enumerate(item):
                    for candidate in answer.candidates:
                        whole = cut_at(candidate.text, self.wishes.stop)
                        rest = whole.removeprefix(said.get(place, ""))
                        yield self._event(
                            desk,
                            _Said(
                                index, rest, _reason(candidate), self._log_probs(desk, candidate, answer, 0)
                            ),
                        )
                        written += len(candidate.pieces)
                        index += 1
                if self.asked.stream_options is not None and self.asked.stream_options.include_usage:
                    read = sum(await self.asking.tokens(desk, job.texts))
                    usage = {"usage": _usage(read, written)}
                    yield _event(self._reply(desk.name, []) | usage)
        except Exception as error:  # the status is sent already: the stream itself must tell
            yield _event(refusal_of(error).content("/v1"))
        yield "data: [DONE]\n\n"

    def _event(self, desk: Desk, said: "_Said") -> str:
        choice = {
            "index": said.choice,
            "text": said.text,
            "logprobs": said.log_probs,
            "finish_reason": said.finish_reason,
        }
        return _event(self._reply(desk.name, [choice]))

    def _reply(self, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind = {"id": self.id, "object": "text_completion", "created": self.created}
        return kind | {"model": model, "choices": choices}

    def _choice(
        self, desk: Desk, index: int, prompt: str, one: Candidate, answer: Answer, echoed: Scored | None
    ) -> dict[str, Any]:
        before = prompt if self.asked.echo else ""
        log_probs = self._log_probs(desk, one, answer, len(before))
        if echoed is not None and log_probs is not None:
            log_probs = _echoed(echoed, log_probs)
        return {
            "index": index,
            "text": before + cut_at(one.text, self.wishes.stop),
            "logprobs": log_probs,
            "finish_reason": _reason(one),
        }

    def _log_probs(self, desk: Desk, one: Candidate, answer: Answer, offset: int) -> dict[str, Any] | None:
        if self.asked.logprobs is None:
            return None
        values = [
            value for piece, value in zip(one.pieces, one.token_log_probs, strict=False) if piece != END
        ]
        tokens = [_shown(piece) for piece in one.pieces if piece != END]
        tops: list[dict[str, float]] | None = None
        if answer.search is not None and one is answer.candidates[0]:
            tree = answer.search
            last = tree.best or (tree.expansions[-1] if tree.expansions else None)
            path = tree.path(last.node) if last is not None else []
            name = desk.run.task().pieces
            tops = [
                {
                    _shown(name([token])[0]): value
                    for token, value in tree.words[step.parent][: self.asked.logprobs]
                }
                for step in path[: len(tokens)]
            ]
        return {
            "tokens": tokens,
            "token_logprobs": values,
            "top_logprobs": tops,
            "text_offset": _offsets(tokens, one.text, offset),
        }


class _Said(NamedTuple):
    choice: int
    text: str
    finish_reason: str | None = None
    log_probs: dict[str, Any] | None = None


def _json(value: Any) -> str:
    """JSON has no infinity: the log-probability of what cannot be is null."""
    return pydantic_core.to_json(value, inf_nan_mode="null").decode()


def _event(value: Any) -> str:
    return f"data: {_json(value)}\n\n"


def _reason(candidate: Candidate) -> str:
    return "stop" if candidate.finished else "length"


def _shown(piece: str) -> str:
    return piece.replace("▁", " ")


def _offsets(tokens: Sequence[str], text: str, start: int) -> list[int]:
    """Where in the text each token begins, as well as that can be told from what it looks like."""
    offsets, cursor = [], 0
    for token in tokens:
        found = text.find(token, cursor)
        found = text.find(token.strip(), cursor) if found < 0 else found
        offsets.append(start + (cursor if found < 0 else found))
        cursor = cursor if found < 0 else found + len(token.strip())
    return offsets


def _echoed(scored: Scored, log_probs: dict[str, Any]) -> dict[str, Any]:
    """The prompt's own tokens in front; clients expect no value for the first one."""
    tokens = [_shown(piece) for piece in scored.pieces[:-1]]
    values: list[float | None] = [*scored.token_log_probs[:-1]]
    values[:1] = [None] * len(values[:1])
    tops = log_probs["top_logprobs"]
    return {
        "tokens": tokens + log_probs["tokens"],
        "token_logprobs": values + log_probs["token_logprobs"],
        "top_logprobs": None if tops is None else [None] * len(tokens) + tops,
        "text_offset": _offsets(tokens, scored.target, 0) + log_probs["text_offset"],
    }


def _usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
