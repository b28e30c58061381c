"""Regard's reader as people use it: ``run.embed``, by the engine and in the batches that it chooses.

Texts are words, so reading them and putting marks around them is part of the work; the marks are two of the
tokens that everyone else is given.
"""

import protocol
import random_runs
import sentences

from regard.models.reader import ReaderSpec
from regard.parts.pooling import SummingUpSpec
from regard.parts.positions import LearnedSpec, NoPairPositionSpec
from regard.recipes.bert import bert_model
from regard.recipes.reading import reading
from regard.training.memory import keep_freed_memory


def main() -> None:
    keep_freed_memory()  # as the command does
    asked = sentences.asked()
    positions, distances = LearnedSpec(longest=asked.positions), NoPairPositionSpec()
    encoder = bert_model(asked.layers, asked.width, asked.heads, positions, distances, segments=2).encoder
    encoder = encoder.override([f"stack.blocks.0.mixers.1.hidden={asked.hidden}"])
    tokenizer = random_runs.numbered_words(asked.vocabulary)
    spec = reading(ReaderSpec(encoder=encoder), asked.vocabulary, SummingUpSpec(normalise=True))
    run = random_runs.random_run(spec, tokenizer)
    rows = sentences.drawn(asked.texts, tokenizer.size)
    texts = [random_runs.as_text(tokenizer, row[2:].tolist()) for row in rows]

    def step() -> protocol.Step:
        found = run.embed(texts)
        assert found.shape == (len(rows), asked.width)
        return protocol.Step(sum(map(len, rows)), sum(map(len, rows)))

    step()
    parameters = sum(weight.numel() for weight in run.model.parameters())
    protocol.ready(parameters=parameters, engine=run.embedded_by())
    protocol.serve(step)


main()
