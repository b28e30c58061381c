"""Regard continues prompts through its search, greedily, with carried state."""

import argparse

import protocol
import torch

from regard.core.sequences import Tokens
from regard.recipes.gpt import gpt_model
from regard.search.greedy import GreedySpec

END = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "positions", "vocabulary", "rows", "prompt", "tokens"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args()
    torch.manual_seed(1)
    spec = gpt_model(asked.layers, asked.width, asked.heads, asked.positions, dropout=0.0)
    model = spec.build({"text": asked.vocabulary}).eval()
    prompts = torch.randint(4, asked.vocabulary, (asked.rows, asked.prompt))
    search = GreedySpec(shortest=asked.tokens).build()

    @torch.inference_mode()
    def step() -> protocol.Step:
        _, state = model.read(Tokens.whole(prompts[:, :-1]), model.start(asked.rows))
        found = search(model.step, state, prompts[:, -1], END, asked.tokens)
        written = sum(len(best[0].tokens) for best in found)
        return protocol.Step(written, written)

    protocol.ready(parameters=sum(weight.numel() for weight in model.parameters()))
    protocol.serve(step)


main()
