"""A model as a folder for CTranslate2, and a copy of it that a run keeps for itself."""

import shutil
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from regard.core.errors import UsageError
from regard.data.lexicon import Lexicon
from regard.data.shortlists import Shortlist
from regard.data.tokenizers import Tokenizer
from regard.interop.aside import written_aside
from regard.interop.ctranslate2_specs import names_of, their_model
from regard.interop.ctranslate2_weights import TheirSpec
from regard.interop.ctranslate2_words import InexpressibleError
from regard.models.model import ModelSpec
from regard.training import durable

KEPT = "ctranslate2"
"""Folder inside a run; below it one for the weights that were converted, named by their checksum."""
FORMAT = 1
"""Of what we make of a model: a higher number makes older copies stale."""
_VOCABULARY_MAP = "vmap.txt"


def write_model(made: TheirSpec, folder: Path, quantization: str | None = None) -> None:
    """Everything that ``ctranslate2.Translator``, ``Generator`` or ``Encoder`` loads."""
    made.validate()
    made.optimize(quantization)
    made.save(str(folder))


class VocabularyMap(NamedTuple):
    """Which tokens may be written, as CTranslate2 reads it."""

    seal: str
    """Checksum of the shortlist it was made from."""
    text: str

    def write(self, folder: Path) -> None:
        (folder / _VOCABULARY_MAP).write_text(self.text, encoding="utf-8")


def vocabulary_map(shortlist: Shortlist, source: Tokenizer, target: Tokenizer, seal: str) -> VocabularyMap:
    """A line for each source token, and one for none: what may be written whatever is read."""
    read, written = names_of(source), names_of(target)
    tokens = [
        *(written[token] for token in shortlist.common),
        *(written[token] for token in shortlist.beside),
    ]
    if blank := next((name for name in tokens if _divides(name)), None):
        raise InexpressibleError(f"{blank!r} has a blank in it, by which its lists of words are divided")
    common, beside = tokens[: len(shortlist.common)], tokens[len(shortlist.common) :]
    lines = ["\t" + " ".join(common)]
    for number, (begin, end) in enumerate(pairwise(shortlist.begins.tolist())):
        if end > begin and not _divides(read[number]):
            lines.append(f"{read[number]}\t{' '.join(beside[begin:end])}")
    return VocabularyMap(seal, "\n".join(lines) + "\n")


def _divides(name: str) -> bool:
    return any(mark in name for mark in " \t\n\r")


def kept_copy(
    run: Path, seal: str, make: Callable[[], TheirSpec], words: VocabularyMap | None = None
) -> Path:
    """The run's weights, whose checksum is ``seal``, converted once; copies of older weights are removed.

    With ``words`` it is a copy of its own: reading them takes time that only those shall spend who want them.
    """
    place, plain = run / KEPT, f"{seal[:16]}-{FORMAT}"
    current = place / (plain if words is None else f"{plain}-{words.seal[:16]}")
    if current.exists():
        return current
    try:
        with written_aside(current) as aside:
            write_model(make(), aside)
            if words is not None:
                words.write(aside)
    except InexpressibleError:
        raise
    except UsageError:
        if not current.exists():  # otherwise someone else was faster
            raise
    for other in place.iterdir():
        related = other.name == plain or (words is None and other.name.startswith(f"{plain}-"))
        if other != current and not related and not other.name.startswith("."):
            shutil.rmtree(other, ignore_errors=True)
    return current


def export_model(model: ModelSpec, lexicon: Lexicon, weights: Mapping[str, Tensor], target: Path) -> None:
    """A folder for others, with the vocabulary's own file beside it."""
    try:
        with written_aside(target) as aside:
            write_model(their_model(model, lexicon, weights), aside)
            for name, content in lexicon.files().items():
                durable.write_synced(aside / name, content)
    except UsageError as error:
        raise UsageError(f"CTranslate2 cannot run this model: {error}") from None
