"""Room in the beam for hypotheses on the way to a goal (after Post & Vilar 2018).

A hypothesis that takes up a required word early is usually less probable than its neighbours and would be
pruned. So a sentence's continuations are sorted into banks by how far they got, and the beam is filled from
all banks in turn: the best of each bank, then the second of each, and so on.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.state import State, select_rows
from regard.search.constraints import IMPOSSIBLE, NONE, Rules
from regard.search.continuations import Continuations, best_continuations


def seek(
    allowed: Float[Tensor, "rows vocabulary"],
    total: Float[Tensor, "sentences width"],
    wanted: Int[Tensor, "rows options"],
    size: int,
    rules: Rules,
    memory: State,
) -> Continuations:
    """Continuations for a beam of ``size``, ordered by taking turns among the banks.

    In each turn the bank nearest to its goals comes first, so its best hypothesis is never lost. For a
    sentence without goals there is one bank, and order and places are those of the totals.
    """
    candidates = _candidates(allowed, total, wanted, size)
    sentences, width = total.shape
    row = candidates.slot + torch.arange(sentences, device=total.device)[:, None] * width
    after = rules.follow(candidates.token.flatten(), select_rows(memory, row.flatten()))
    bank = rules.progress(after).view(row.shape)

    place = _places_in_banks(bank)
    banks = bank.max() + 1
    last = (row.shape[1] + 1) * banks
    order = torch.where(candidates.cumulative > IMPOSSIBLE, (place + 1) * banks - bank, last).argsort(
        dim=1, stable=True
    )
    return Continuations(*(column.gather(1, order) for column in candidates._replace(place=place)))


def _candidates(
    allowed: Float[Tensor, "rows vocabulary"],
    total: Float[Tensor, "sentences width"],
    wanted: Int[Tensor, "rows options"],
    size: int,
) -> Continuations:
    """The best of every hypothesis (one can end, so one more than the beam) and all wanted ones, by total."""
    sentences, width = total.shape
    start = total.view(-1, 1)
    best = best_continuations(allowed, start, min(size + 1, allowed.shape[1]))
    token = torch.cat((best.token, wanted), dim=1)
    again = (wanted[:, :, None] == token[:, None, :]).tril(best.token.shape[1] - 1).any(2)
    gain = allowed.gather(1, wanted.clamp_min(0)).masked_fill(again | (wanted == NONE), IMPOSSIBLE)

    cumulative = torch.cat((best.cumulative, gain + start), dim=1)
    slot = torch.arange(width, device=total.device).repeat_interleave(token.shape[1]).expand(sentences, -1)
    cumulative, order = cumulative.view(sentences, -1).sort(dim=1, descending=True, stable=True)
    token = token.clamp_min(0).view(sentences, -1).gather(1, order)
    return Continuations(cumulative, slot.gather(1, order), token, order)


def _places_in_banks(bank: Int[Tensor, "sentences count"]) -> Int[Tensor, "sentences count"]:
    """How many of the same bank stand before each."""
    grouped, order = bank.sort(dim=1, stable=True)
    begin = torch.searchsorted(grouped, grouped)
    place = torch.arange(bank.shape[1], device=bank.device) - begin
    return torch.empty_like(place).scatter(1, order, place)
