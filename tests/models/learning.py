"""The smallest training there is: copy or reverse a few letters, then write them greedily."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core.sequences import Tokens
from regard.models.sequence_to_sequence import SequenceToSequence, SequenceToSequenceSpec
from regard.objectives.next_token import NextTokenSpec
from regard.objectives.objective import Progress

PADDING, BEGIN, END, LETTERS, LONGEST = 0, 1, 2, 9, 6
VOCABULARY = 3 + LETTERS
Row = list[int]


class Pairs(NamedTuple):
    source: Tokens
    target: Tokens


def words(count: int, generator: torch.Generator) -> list[Row]:
    lengths = torch.randint(1, LONGEST + 1, (count,), generator=generator).tolist()
    return [torch.randint(3, VOCABULARY, (length,), generator=generator).tolist() for length in lengths]


def pairs(sources: list[Row], task: Callable[[Row], Row]) -> Pairs:
    targets = [[BEGIN, *task(source), END] for source in sources]
    return Pairs(Tokens.pad([[*source, END] for source in sources], PADDING), Tokens.pad(targets, PADDING))


def train(
    spec: SequenceToSequenceSpec, task: Callable[[Row], Row], steps: int, rate: float = 1e-2
) -> SequenceToSequence:
    torch.manual_seed(0)
    model = spec.build({"source": VOCABULARY, "target": VOCABULARY})
    objective, generator = NextTokenSpec().build(), torch.Generator().manual_seed(1)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min((step + 1) / 50, 1 - step / steps)
        outcome = objective(model, pairs(words(32, generator), task), Progress(step, 0, 0))
        optimiser.zero_grad()
        (outcome.loss / outcome.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model.eval()


@torch.no_grad()
def write(model: SequenceToSequence, source: Tokens) -> list[Row]:
    """Greedy, one token at a time."""
    state, tokens = model.start(source), torch.full((len(source.ids),), BEGIN)
    columns: list[Tensor] = []
    for _ in range(LONGEST + 1):
        log_probs, state = model.step(tokens, state)
        tokens = log_probs.argmax(-1)
        columns.append(tokens)
    rows = torch.stack(columns, dim=1).tolist()
    return [row[: row.index(END)] if END in row else row for row in rows]


def share_right(model: SequenceToSequence, task: Callable[[Row], Row], count: int = 200) -> float:
    """On words drawn apart from those of the training."""
    sources = words(count, torch.Generator().manual_seed(99))
    written = write(model, pairs(sources, task).source)
    return sum(row == task(source) for row, source in zip(written, sources, strict=True)) / count
