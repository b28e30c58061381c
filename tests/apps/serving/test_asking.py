"""What a request costs, and how much of it is found out before it is taken on."""

import asyncio
from collections.abc import Sequence

import pytest

from regard.apps.serving.asking import Asking
from regard.apps.serving.limits import Limits
from regard.apps.serving.metrics import Metrics
from regard.apps.serving.refusals import Refusal
from regard.apps.serving.shelf import Desk, Shelf


class WritesOut:
    """A tokenizer for which a ligature is as many tokens as it has bytes when it is written out."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        self.counted += texts
        return [[1] * sum(33 if character == "\ufdfa" else 1 for character in text) for text in texts]


def costs(limit: int, *texts: str) -> tuple[list[int], list[str]]:
    tokenizer = WritesOut()
    asking = Asking(object.__new__(Shelf), Limits(tokens=limit), Metrics())
    desk = object.__new__(Desk)
    desk.tokenizer = tokenizer  # type: ignore[assignment]
    return asyncio.run(asking._costs(desk, texts)), tokenizer.counted


def test_short_texts_are_not_counted_and_even_an_empty_one_costs_something() -> None:
    found, counted = costs(400, "", "abcdefgh", "abcdefghijkl")
    assert counted == []
    assert found == [1, 3, 4]


def test_what_may_be_too_long_is_counted() -> None:
    found, counted = costs(400, "abcdefghijklm", "a")
    assert counted == ["abcdefghijklm"]
    assert len(found) == 2


def test_characters_that_become_many_tokens_are_refused_as_such() -> None:
    costs(400, "\ufdfa" * 12)
    with pytest.raises(Refusal, match="429 are too many, at most 400"):
        costs(400, "\ufdfa" * 13)
