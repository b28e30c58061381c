"""What a good engineer writes in an evening: a small GPT, fused attention, fused AdamW, random windows."""

import argparse
from pathlib import Path

import numpy as np
import protocol
import torch
import torch.nn.functional as F
from small_gpt import SmallGPT
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("layers", "width", "heads", "window", "rows"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16, as torch does it")
    asked = parser.parse_args()
    with np.load(asked.folder / "text.npz") as file:
        stream, vocabulary = file["stream"].astype(np.int64), int(file["vocabulary"])
    model = SmallGPT(vocabulary, asked.window, asked.layers, asked.width, asked.heads, asked.dropout)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    random = np.random.default_rng(1)

    def step() -> protocol.Step:
        starts = random.integers(0, len(stream) - asked.window - 1, asked.rows)
        ids = torch.from_numpy(np.stack([stream[begin : begin + asked.window + 1] for begin in starts]))
        with torch.autocast("cpu", torch.bfloat16, enabled=asked.bfloat16):
            logits = model(ids[:, :-1]).float().flatten(0, 1)
        loss = F.cross_entropy(logits, ids[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return protocol.Step(ids[:, 1:].numel(), ids[:, 1:].numel())

    protocol.ready(parameters=sum(weight.numel() for weight in model.parameters()), vocabulary=vocabulary)
    protocol.serve(step)


main()
