"""``generate`` of transformers, greedily, with its cache of keys and values."""

import argparse

import protocol
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

END = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "positions", "vocabulary", "rows", "prompt", "tokens"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args()
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=asked.vocabulary,
        n_positions=asked.positions,
        n_embd=asked.width,
        n_layer=asked.layers,
        n_head=asked.heads,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=0,
    )
    model = GPT2LMHeadModel(config).eval()
    prompts = torch.randint(4, asked.vocabulary, (asked.rows, asked.prompt))

    @torch.inference_mode()
    def step() -> protocol.Step:
        written = model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=False,
            min_new_tokens=asked.tokens,
            max_new_tokens=asked.tokens,
        )
        new = written[:, asked.prompt :].numel()
        return protocol.Step(new, new)

    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()), version=transformers.__version__
    )
    protocol.serve(step)


main()
