"""The best continuations of a beam, without sorting the vocabulary.

``topk`` over a whole row is the most expensive thing a search does by itself. The count best tokens must lie
in the count chunks with the largest maxima, and maxima of chunks are one fast pass over memory: so the
chunks are ranked first and only the winners are looked into.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK = 64
FEWEST_CHUNKS = 8
"""Below this many chunks a plain topk is as fast."""


class Continuations(NamedTuple):
    """Best first. ``slot`` says which hypothesis of the sentence is continued."""

    cumulative: Float[Tensor, "sentences count"]
    slot: Int[Tensor, "sentences count"]
    token: Int[Tensor, "sentences count"]
    place: Int[Tensor, "sentences count"]
    """0 for the best; where hypotheses compete in several banks (``goals``), the place within the bank."""


def precise(device: torch.device) -> torch.dtype:
    """What sums of log-probabilities are kept in, so that long hypotheses lose nothing to rounding."""
    return torch.float32 if device.type == "mps" else torch.float64


def best_continuations(
    log_probs: Float[Tensor, "rows vocabulary"],
    cumulative: Float[Tensor, "sentences width"],
    count: int,
) -> Continuations:
    """The ``count`` best of all one-token continuations of each sentence's ``width`` hypotheses.

    Rows are sentence by sentence. NaN ranks above everything, so that it is seen and can be refused.
    """
    sentences, width = cumulative.shape
    vocabulary = log_probs.shape[1]
    chunks = vocabulary // CHUNK
    if chunks < FEWEST_CHUNKS or width * chunks < count:
        totals = (log_probs.view(sentences, width, vocabulary) + cumulative[:, :, None]).flatten(1)
        best, where = totals.topk(count, dim=1)
        return Continuations(best, where // vocabulary, where % vocabulary, _places(best))
    return _through_chunks(log_probs, cumulative, count, chunks)


def _through_chunks(
    log_probs: Float[Tensor, "rows vocabulary"],
    cumulative: Float[Tensor, "sentences width"],
    count: int,
    chunks: int,
) -> Continuations:
    sentences, width = cumulative.shape
    device = log_probs.device
    whole = log_probs[:, : chunks * CHUNK].view(-1, chunks, CHUNK)
    peaks = whole.amax(2).view(sentences, width, chunks) + cumulative[:, :, None]
    chosen = peaks.flatten(1).topk(count, dim=1, sorted=False).indices
    slot, chunk = chosen // chunks, chosen % chunks

    row = slot + torch.arange(sentences, device=device)[:, None] * width
    inside = whole[row, chunk] + cumulative.gather(1, slot)[:, :, None]
    # What is left over when the vocabulary is not a whole number of chunks: always looked into.
    left = log_probs.shape[1] - chunks * CHUNK
    rest = log_probs[:, chunks * CHUNK :].view(sentences, width, left) + cumulative[:, :, None]
    best, where = torch.cat((inside.flatten(1), rest.flatten(1)), dim=1).topk(count, dim=1)

    outside = where - count * CHUNK
    in_chunk = outside < 0
    place = where.clamp_max(count * CHUNK - 1) // CHUNK
    outside = outside.clamp_min(0)
    return Continuations(
        best,
        torch.where(in_chunk, slot.gather(1, place), outside // max(1, left)),
        torch.where(
            in_chunk, chunk.gather(1, place) * CHUNK + where % CHUNK, chunks * CHUNK + outside % max(1, left)
        ),
        _places(best),
    )


def _places(best: Float[Tensor, "sentences count"]) -> Int[Tensor, "sentences count"]:
    return torch.arange(best.shape[1], device=best.device).expand(best.shape)
