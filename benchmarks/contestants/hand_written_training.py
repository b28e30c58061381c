"""What a good engineer writes in an afternoon: torch.nn.Transformer or GRUs, fused Adam, sorted batches."""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import protocol
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.corpus import PAD, Corpus, batches, padded


class Translator(nn.Module):
    def __init__(
        self, vocabulary: int, layers: int, width: int, hidden: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.width = width
        self.words = nn.Embedding(vocabulary, width, padding_idx=PAD)
        nn.init.normal_(self.words.weight, std=width**-0.5)
        self.body = nn.Transformer(width, heads, layers, layers, hidden, dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        place = torch.arange(512)[:, None]
        speed = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
        table = torch.stack((torch.sin(place * speed), torch.cos(place * speed)), -1).flatten(1)
        self.register_buffer("places", table)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.words(ids) * math.sqrt(self.width) + self.places[: ids.shape[1]])

    def forward(self, source: Tensor, given: Tensor) -> Tensor:
        later = torch.ones(given.shape[1], given.shape[1], dtype=torch.bool).triu(1)
        hidden = self.body(
            self.embed(source),
            self.embed(given),
            tgt_mask=later,
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.words.weight)


class RecurrentTranslator(nn.Module):
    """Bidirectional GRU, additive attention, GRU cell with input feeding, one step at a time."""

    def __init__(
        self, vocabulary: int, layers: int, width: int, hidden: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=PAD)
        nn.init.normal_(self.words.weight, std=width**-0.5)
        self.encoder = nn.GRU(width, hidden, bidirectional=True, batch_first=True)
        self.cell = nn.GRUCell(width + 2 * hidden, hidden)
        self.bridge = nn.Linear(hidden, hidden)
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.readout = nn.Linear(width + 3 * hidden, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, given: Tensor) -> Tensor:
        states, _ = self.encoder(self.dropout(self.words(source)))
        keys, padding = self.key(states), source == PAD
        hidden = torch.tanh(self.bridge(states[:, 0, self.bridge.in_features :]))
        outputs = []
        for word in self.dropout(self.words(given)).unbind(1):
            scores = self.score(torch.tanh(keys + self.query(hidden)[:, None]))[..., 0]
            weights = scores.masked_fill(padding, -torch.inf).softmax(-1)
            context = torch.bmm(weights[:, None], states)[:, 0]
            hidden = self.cell(torch.cat((word, context), -1), hidden)
            outputs.append(torch.tanh(self.readout(torch.cat((word, hidden, context), -1))))
        return F.linear(self.dropout(torch.stack(outputs, 1)), self.words.weight)


def endless(corpus: Corpus, budget: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    sources, targets = corpus.source.rows(), corpus.target.rows()
    epoch = 0
    while True:
        for rows in batches(corpus, budget, epoch):
            wanted = [targets[row] for row in rows]
            yield (
                torch.from_numpy(padded([sources[row] for row in rows], begin=False, end=True)),
                torch.from_numpy(padded(wanted, begin=True, end=False)),
                torch.from_numpy(padded(wanted, begin=False, end=True)),
            )
        epoch += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kind", choices=["transformer", "recurrent"], default="transformer")
    for name in ("layers", "width", "hidden", "heads", "batch-tokens"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16, as torch does it")
    asked = parser.parse_args()
    torch.manual_seed(1)
    corpus = Corpus.load(asked.folder / "corpus.npz")
    build = Translator if asked.kind == "transformer" else RecurrentTranslator
    model = build(corpus.vocabulary, asked.layers, asked.width, asked.hidden, asked.heads, asked.dropout)
    optimiser = torch.optim.Adam(model.train().parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    data = endless(corpus, asked.batch_tokens)

    def step() -> protocol.Step:
        source, given, wanted = next(data)
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=asked.bfloat16):
            logits = model(source, given).float().flatten(0, 1)
        loss = F.cross_entropy(logits, wanted.flatten(), ignore_index=PAD, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return protocol.Step(int((wanted != PAD).sum()), wanted.numel())

    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=corpus.vocabulary,
        version=torch.__version__,
    )
    protocol.serve(step)


main()
