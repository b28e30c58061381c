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
from regard.search.continuations import Continuations


def seek(
    best: Continuations,
    wanted: Int[Tensor, "rows options"],
    allowed: Float[Tensor, "rows vocabulary"],
    total: Float[Tensor, "sentences width"],
    rules: Rules,
    memory: State,
) -> Continuations:
    """Join wanted continuations to the ``best`` ones, and order all by taking turns among the banks.

    In each turn the bank nearest to its goals comes first, so its best hypothesis is never lost. For a
    sentence without goals there is one bank, and order and places are those of the totals.
    """
    candidates = _join(best, wanted, allowed, total)
    sentences, width = total.shape
    row = candidates.slot + torch.arange(sentences, device=total.device)[:, None] * width
    after = rules.follow(candidates.token.flatten(), select_rows(memory, row.flatten()))
    progress = rules.progress(after).view(row.shape)

    count = row.shape[1]
    possible = candidates.cumulative > IMPOSSIBLE
    same_bank = (progress[:, :, None] == progress[:, None, :]) & possible[:, None, :]
    place = same_bank.tril(-1).sum(2)
    banks = progress.max() + 1
    key = torch.where(possible, (place + 1) * banks - progress, (count + 1) * banks)
    order = key.argsort(dim=1, stable=True)
    candidates = candidates._replace(place=place)
    return Continuations(*(column.gather(1, order) for column in candidates))


def _join(
    best: Continuations,
    wanted: Int[Tensor, "rows options"],
    allowed: Float[Tensor, "rows vocabulary"],
    total: Float[Tensor, "sentences width"],
) -> Continuations:
    """The best of a sentence, the best of each hypothesis and the wanted ones, by total, none twice."""
    sentences, width = total.shape
    options = torch.cat((wanted, allowed.argmax(1, keepdim=True)), dim=1)
    gain = allowed.gather(1, options.clamp_min(0)).masked_fill(options == NONE, IMPOSSIBLE)
    reached = (gain + total.view(-1, 1)).view(sentences, -1)
    slot = torch.arange(width, device=total.device).repeat_interleave(options.shape[1])
    cumulative = torch.cat((best.cumulative, reached), dim=1)
    slots = torch.cat((best.slot, slot.expand(sentences, -1)), dim=1)
    tokens = torch.cat((best.token, options.view(sentences, -1)), dim=1)
    name = slots * (allowed.shape[1] + 1) + tokens - NONE
    again = (name[:, :, None] == name[:, None, :]).tril(-1).any(2)
    cumulative, order = cumulative.masked_fill(again, IMPOSSIBLE).sort(dim=1, descending=True, stable=True)
    tokens = tokens.clamp_min(0)
    return Continuations(cumulative, slots.gather(1, order), tokens.gather(1, order), order)
