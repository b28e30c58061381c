"""nanoGPT's published settings for a processor (4 layers, 128 wide, 2,000 updates of 12 × 64 characters).

    python hand_written_characters.py TRAIN.txt VALID.txt

prints one line of JSON: minutes of training, and the loss over the whole validation text in windows of 64.
"""

import json
import math
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from small_gpt import SmallGPT
from torch import Tensor, nn

UPDATES, WARMUP, PEAK, LEAST, WINDOW, ROWS = 2000, 100, 1e-3, 1e-4, 64, 12


def rate(update: int) -> float:
    if update < WARMUP:
        return PEAK * (update + 1) / (WARMUP + 1)
    done = (update - WARMUP) / (UPDATES - WARMUP)
    return LEAST + 0.5 * (1 + math.cos(math.pi * done)) * (PEAK - LEAST)


@torch.no_grad()
def loss_of(model: nn.Module, text: Tensor) -> float:
    count = (len(text) - 1) // WINDOW
    given, wanted = (text[shift : shift + count * WINDOW].view(count, WINDOW) for shift in (0, 1))
    losses = [
        F.cross_entropy(model(g).flatten(0, 1), w.flatten(), reduction="sum")
        for g, w in zip(given.split(64), wanted.split(64), strict=True)
    ]
    return float(torch.stack(losses).sum()) / wanted.numel()


def main() -> None:
    texts = [Path(name).read_text(encoding="utf-8") for name in sys.argv[1:3]]
    letters = {letter: number for number, letter in enumerate(sorted(set("".join(texts))))}
    train, valid = (torch.tensor([letters[letter] for letter in text]) for text in texts)
    torch.manual_seed(1337)
    model = SmallGPT(len(letters), WINDOW, layers=4, width=128, heads=4, dropout=0.0)
    matrices = [weight for weight in model.parameters() if weight.ndim >= 2]
    vectors = [weight for weight in model.parameters() if weight.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99), fused=True)
    began = time.perf_counter()
    for update in range(UPDATES):
        for group in optimiser.param_groups:
            group["lr"] = rate(update)
        starts = torch.randint(len(train) - WINDOW, (ROWS,)).tolist()
        ids = torch.stack([train[begin : begin + WINDOW + 1] for begin in starts])
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    minutes = (time.perf_counter() - began) / 60
    print(json.dumps({"minutes": minutes, "loss": loss_of(model.eval(), valid)}))


main()
