"""What a good engineer writes in an evening: a small GPT, fused attention, fused AdamW, random windows."""

import argparse
from pathlib import Path

import numpy as np
import protocol
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        rows, time, width = x.shape
        parts = self.project(self.before(x)).split(width, dim=2)
        q, k, v = (part.view(rows, time, self.heads, -1).transpose(1, 2) for part in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        seen = seen.transpose(1, 2).reshape(rows, time, width)
        x = x + F.dropout(self.out(seen), self.dropout)
        return x + F.dropout(
            self.narrow(F.gelu(self.widen(self.between(x)), approximate="tanh")), self.dropout
        )


class Model(nn.Module):
    def __init__(
        self, vocabulary: int, window: int, layers: int, width: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(window, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.last, self.dropout = nn.LayerNorm(width), dropout
        for weight in self.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = F.dropout(self.words(ids) + self.places(torch.arange(ids.shape[1])), self.dropout)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.words.weight)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("layers", "width", "heads", "window", "rows"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    asked = parser.parse_args()
    with np.load(asked.folder / "text.npz") as file:
        stream, vocabulary = file["stream"].astype(np.int64), int(file["vocabulary"])
    model = Model(vocabulary, asked.window, asked.layers, asked.width, asked.heads, asked.dropout)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    random = np.random.default_rng(1)

    def step() -> protocol.Step:
        starts = random.integers(0, len(stream) - asked.window - 1, asked.rows)
        ids = torch.from_numpy(np.stack([stream[begin : begin + asked.window + 1] for begin in starts]))
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return protocol.Step(ids[:, 1:].numel(), ids[:, 1:].numel())

    protocol.ready(parameters=sum(weight.numel() for weight in model.parameters()), vocabulary=vocabulary)
    protocol.serve(step)


main()
