"""Regard continues prompts as ``regard run --greedy`` does, by the engine that it chooses."""

import argparse
from typing import Any

import protocol
import random_runs
import torch

from regard.data.text import TextSpec
from regard.data.tokenizers import TokenizerSpec
from regard.recipes.gpt import gpt_model
from regard.recipes.running_text import running_text
from regard.search.greedy import GreedySpec
from regard.training.optimisation import AdamW

NEVER = -1e4


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "positions", "vocabulary", "rows", "prompt", "tokens"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args()
    tokenizer = random_runs.numbered_words(asked.vocabulary)
    data = TextSpec(tokenizer=TokenizerSpec(unit="word", size=asked.vocabulary), window=asked.positions)
    model = gpt_model(asked.layers, asked.width, asked.heads, asked.positions, dropout=0.0)
    spec = running_text(data, model, AdamW(), peak=1e-3, warmup=1).override(["model.decoder.head.bias=true"])

    def endless(model: Any) -> None:
        """Everyone writes as many tokens as are asked for."""
        model.decoder.head.words.bias[tokenizer.end] = NEVER

    run = random_runs.random_run(spec, tokenizer, endless)
    # An end token stands in front of every prompt.
    drawn = torch.randint(4, tokenizer.size, (asked.rows, asked.prompt - 1))
    prompts = [random_runs.as_text(tokenizer, row) for row in drawn.tolist()]
    search = GreedySpec(longest_ratio=0.0, longest_extra=asked.tokens)

    def step() -> protocol.Step:
        answers = list(run.stream(prompts, search, detail="text"))
        written = sum(len(answer.candidates[0].tokens) for answer in answers)
        assert written == asked.rows * asked.tokens
        return protocol.Step(written, written)

    step()
    parameters = sum(weight.numel() for weight in run.model.parameters())
    protocol.ready(parameters=parameters, engine=run.answered_by(search))
    protocol.serve(step)


main()
