"""Having read before is worth most where there are few labels: shown on a language of four topics."""

import random
from pathlib import Path

import pytest

from regard.apps.training import train
from tests.apps.toys import toy

TOPICS = 4


def language() -> list[list[str]]:
    """Words of each topic, of letters that tell nothing."""
    rng = random.Random(7)
    words = sorted({"".join(rng.choices("abcdefghijklmnop", k=4)) for _ in range(15 * TOPICS)})
    rng.shuffle(words)
    return [words[topic::TOPICS] for topic in range(TOPICS)]


def sentences(count: int, length: int, seed: int) -> list[tuple[str, str]]:
    rng, topics = random.Random(seed), language()
    return [
        (" ".join(rng.choices(topics[number % TOPICS], k=length)), str(number % TOPICS))
        for number in range(count)
    ]


_WORDS = "data.tokenizer={unit: blank, size: 100}"
READERS = {
    "roberta": (
        "classifier",
        (
            "data.tokenizer={unit: blank, size: 100, hides: true}",
            "model.encoder.embedding.dropout=0.0",
            "model.encoder.stack.blocks.0.join.dropout=0.0",
        ),
        0.01,
    ),
    "elmo": ("classifier", (_WORDS,), 0.01),
    "rnn_lm": (
        "ulmfit",
        (
            _WORDS,
            "model.decoder.embedding.dropout=0.0",
            "model.decoder.stack.blocks.0.join.dropout=0.0",
        ),
        0.01,
    ),
}
"""What each is tried with, how it is kept from forgetting so small a language, and the rate of the task."""


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_readers_need_fewer_labels(name: str, tmp_path: Path) -> None:
    """Eight short texts with labels; most words of the test were never seen with one."""
    task, settings, peak = READERS[name]
    texts = [text for text, _ in sentences(800, 10, seed=1)]
    start = train(
        toy(name, *settings, "training.schedule.peak=0.01"), texts, tmp_path / "start", valid=texts[:80],
        steps=400, seed=1,
    ).run  # fmt: skip
    labelled, test = sentences(8, 3, seed=2), sentences(200, 1, seed=3)
    common = [f"training.schedule.peak={peak}", "training.validation.every=60", "evaluation.examples=8"]

    def accuracy(recipe: str, out: str, *more: str, start_from: Path | None = None) -> float:
        given = [*common, *more]
        run = train(
            recipe, labelled, tmp_path / out, valid=labelled, steps=60, seed=1, settings=given,
            start_from=start_from,
        ).run  # fmt: skip
        return run.evaluate(test, "accuracy").value

    scratch = accuracy("classifier", "scratch")
    frozen = accuracy(task, "frozen", "training.thawing.freeze=all", start_from=start.path)
    assert scratch < 0.75
    assert frozen > scratch + 0.15, (scratch, frozen)
