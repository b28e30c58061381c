"""The interface of LibreTranslate's clients: translate, languages, detect, settings."""

from collections.abc import Sequence
from math import exp
from typing import Annotated, Any, Literal

import pydantic_core
from babel import Locale
from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from regard.apps.serving.asking import Asking
from regard.apps.serving.batching import Work
from regard.apps.serving.limits import Limits
from regard.apps.serving.refusals import Refusal
from regard.apps.serving.shelf import Desk, Offer
from regard.apps.serving.strict import Body, form_or_json, question, validated
from regard.apps.serving.works import Answering
from regard.data.translatable.html import HtmlDocument
from regard.tasks.answers import Answer

_MOST_CLASSES = 5


class TranslateRequest(Body):
    q: str | list[str]
    source: str
    """A language, or ``auto``."""
    target: str
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(ge=0, strict=False)] = 0
    api_key: str | None = None


class DetectRequest(Body):
    q: str
    api_key: str | None = None


def _described(model: type[Body]) -> dict[str, Any]:
    schema = model.model_json_schema()
    forms = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {form: {"schema": schema} for form in forms}}}


def routes(asking: Asking, detector: str | None, keys_needed: bool) -> APIRouter:
    router = APIRouter(tags=["LibreTranslate"])
    offers = [offer for offer in asking.shelf.offers.values() if offer.languages is not None]

    @question(router, "/translate", openapi_extra=_described(TranslateRequest))
    async def translate(request: Request) -> Response:
        """A text, or a list of texts; of HTML, what stands between its tags."""
        fields = await form_or_json(request)
        for name in ("q", "source", "target"):
            if not fields.get(name) and fields.get(name) != []:
                raise Refusal(400, f"Invalid request: missing {name} parameter")
        asked = validated(TranslateRequest, fields)
        asking.few(asked.alternatives, "alternatives", asking.limits.answers - 1)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        found = None
        if asked.source == "auto":
            found = await _detected(request, asking, detector, " ".join(texts)[:1000])
        offer = _offer(offers, asked.source if found is None else found["language"], asked.target)
        translation = Translation(asking, offer, asked.format, asked.alternatives + 1)
        kinds = await translation.of(request, texts)
        one = isinstance(asked.q, str)
        reply: dict[str, Any] = {"translatedText": kinds[0][0] if one else kinds[0]}
        if found is not None:
            reply["detectedLanguage"] = found if one else [found] * len(texts)
        if asked.alternatives:
            others = [[kind[number] for kind in kinds[1:]] for number in range(len(texts))]
            reply["alternatives"] = others[0] if one else others
        return Response(pydantic_core.to_json(reply), media_type="application/json")

    @router.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        """From which to which."""
        return [
            {"code": code, "name": _name(code), "targets": _targets(offers, code)} for code in _codes(offers)
        ]

    @question(router, "/detect", openapi_extra=_described(DetectRequest))
    async def detect(request: Request) -> Response:
        """Which language a text is in, the most probable first."""
        fields = await form_or_json(request)
        if not fields.get("q"):
            raise Refusal(400, "Invalid request: missing q parameter")
        asked = validated(DetectRequest, fields)
        if detector is None:
            raise Refusal(400, "this server cannot detect languages: no classifier is served")
        return JSONResponse(await _classes(request, asking, detector, asked.q))

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        return _settings(offers, asking.limits, keys_needed)

    @router.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    return router


class Translation:
    """Lines are translated line by line, as a run has learned them; empty ones stay."""

    def __init__(self, asking: Asking, offer: Offer, form: str, best: int) -> None:
        self.asking, self.offer, self.form, self.best = asking, offer, form, best

    async def of(self, request: Request, texts: Sequence[str]) -> list[list[str]]:
        """The translations of all texts, and after them as many alternatives to each as were asked for."""
        documents = [HtmlDocument(text) if self.form == "html" else PlainText(text) for text in texts]
        pieces = [document.texts for document in documents]
        flat = [piece for some in pieces for piece in some]
        if not flat:
            return [list(texts)] * self.best
        _, _, answers = await self.asking.results(request, self.offer.name, self._work, flat)
        kinds = []
        for rank in range(self.best):
            said = iter(_ranked(answer, rank) for answer in answers)
            kinds.append(
                [
                    document.replaced([next(said) for _ in some])
                    for document, some in zip(documents, pieces, strict=True)
                ]
            )
        return kinds

    def _work(self, desk: Desk) -> Work:
        def answering() -> Work:
            search = self.asking.search(desk, best=self.best if self.best > 1 else None)
            return Answering(desk.run, search, detail="text")

        return desk.once(("translate", self.best), answering)


class PlainText:
    """Lines that hold something are texts; line ends and empty lines stay."""

    def __init__(self, whole: str) -> None:
        self._lines = whole.split("\n")

    @property
    def texts(self) -> list[str]:
        return [line for line in self._lines if line.strip()]

    def replaced(self, texts: Sequence[str]) -> str:
        said = iter(texts)
        return "\n".join(next(said) if line.strip() else line for line in self._lines)


def _ranked(answer: Answer, rank: int) -> str:
    """Where there are fewer answers, the last one again."""
    return answer.candidates[min(rank, len(answer.candidates) - 1)].text if answer.candidates else ""


def _offer(offers: Sequence[Offer], source: str, target: str) -> Offer:
    for offer in offers:
        if offer.languages == (source, target):
            return offer
    for code in (source, target):
        if code not in _codes(offers):
            raise Refusal(400, f"{code[:50]} is not supported")
    said = f"{_name(target)} ({target}) is not available as a target language from {_name(source)} ({source})"
    raise Refusal(400, said)


async def _detected(request: Request, asking: Asking, detector: str | None, text: str) -> dict[str, Any]:
    if detector is not None:
        return (await _classes(request, asking, detector, text))[0]
    sources = sorted({offer.languages[0] for offer in asking.shelf.offers.values() if offer.languages})
    if len(sources) != 1:
        raise Refusal(400, "auto is not supported: this server cannot detect languages")
    return {"confidence": 100, "language": sources[0]}


async def _classes(request: Request, asking: Asking, detector: str, text: str) -> list[dict[str, Any]]:
    line = " ".join(text.split())

    def work(desk: Desk) -> Answering:
        return Answering(desk.run, asking.search(desk, best=_MOST_CLASSES))

    _, _, (answer,) = await asking.results(request, detector, work, [line])
    return [
        {"confidence": round(100 * exp(one.log_prob), 2), "language": one.text} for one in answer.candidates
    ]


def _codes(offers: Sequence[Offer]) -> list[str]:
    return sorted({code for offer in offers for code in offer.languages or ()})


def _targets(offers: Sequence[Offer], code: str) -> list[str]:
    pairs = (offer.languages for offer in offers if offer.languages is not None)
    return sorted({target for source, target in pairs if source == code})


def _name(code: str) -> str:
    try:
        return Locale.parse(code, sep="-").get_language_name("en") or code
    except ValueError:  # a language that nobody has written down
        return code


def _settings(offers: Sequence[Offer], limits: Limits, keys_needed: bool) -> dict[str, Any]:
    source, target = (offers[0].languages or ("", "")) if offers else ("", "")
    return {
        "apiKeys": keys_needed,
        "keyRequired": keys_needed,
        "charLimit": limits.characters,
        "filesTranslation": False,
        "supportedFilesFormat": [],
        "frontendTimeout": 500,
        "suggestions": False,
        "language": {
            "source": {"code": source, "name": _name(source)},
            "target": {"code": target, "name": _name(target)},
        },
    }
