"""The shortlist of a run: learned from pairs, kept in its folder, read when answers shall come from it."""

from typing import NamedTuple, Protocol, runtime_checkable

from regard.core.errors import RunError, UsageError
from regard.data.data import PreparedData
from regard.data.lexicon import Lexicon
from regard.data.readers import PAIR
from regard.data.shortlists import BEST, COMMON, Shortlist
from regard.engines.choice import Listed
from regard.training.run_folder import SHORTLIST, RunFolder


class Entries(NamedTuple):
    """How much is on a shortlist."""

    common: int
    source: int
    """Tokens of the source that it knows something of …"""
    beside: int
    """… and tokens of the target beside them, in all."""


@runtime_checkable
class HasShortlist(Protocol):
    """Data of which can be learned what stands beside what."""

    def shortlist(self, best: int, common: int) -> Shortlist: ...


def keep_shortlist(
    folder: RunFolder, prepared: PreparedData, best: int = BEST, common: int = COMMON
) -> Entries | None:
    """Learned and written; None of data in which nothing stands beside anything."""
    if not isinstance(prepared, HasShortlist):
        return None
    learned = prepared.shortlist(best, common)
    folder.save_shortlist(learned.tensors())
    known = int((learned.begins[1:] > learned.begins[:-1]).sum())
    return Entries(len(learned.common), known, len(learned.beside))


def read_shortlist(folder: RunFolder, lexicon: Lexicon) -> Listed:
    """A run without one is refused with what to do about it."""
    refuse_without_pairs(folder, lexicon)
    if not folder.has_shortlist():
        raise UsageError(
            f"--shortlist: {folder.path} has none; it is learned from the training data: "
            f"regard shortlist {folder.path} --data …"
        )
    tensors, seal = folder.read_shortlist()
    try:
        return Listed(Shortlist.from_tensors(tensors, lexicon["source"], lexicon["target"]), seal)
    except RunError as error:
        raise RunError(f"{folder.path / SHORTLIST}: {error}") from None


def refuse_without_pairs(folder: RunFolder, lexicon: Lexicon) -> None:
    if tuple(lexicon) != PAIR:
        raise UsageError(
            f"{folder.path}: a shortlist is for runs that read one text and write another; this one knows of "
            f"{', '.join(lexicon)}"
        )
