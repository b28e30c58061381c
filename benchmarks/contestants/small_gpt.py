"""A small GPT as a good engineer writes it: fused attention, one matrix for words in and out."""

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
        dropout = self.dropout if self.training else 0.0
        parts = self.project(self.before(x)).split(width, dim=2)
        q, k, v = (part.view(rows, time, self.heads, -1).transpose(1, 2) for part in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        x = x + F.dropout(self.out(seen.transpose(1, 2).reshape(rows, time, width)), dropout)
        wide = F.gelu(self.widen(self.between(x)), approximate="tanh")
        return x + F.dropout(self.narrow(wide), dropout)


class SmallGPT(nn.Module):
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
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        x = F.dropout(x, self.dropout if self.training else 0.0)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.words.weight)
