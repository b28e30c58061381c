"""Runs from and for other programs: ``regard import`` and ``regard export``."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from regard.apps.session import Run, load, read_lexicon
from regard.core.errors import RunError, UsageError, nearest
from regard.data.tokenizers import Tokenizer
from regard.interop import vector_files
from regard.interop.aside import refuse_occupied, written_aside
from regard.interop.hugging_face import folder_files, read_folder
from regard.interop.word_vectors import read_word_vectors, vectors_of
from regard.recipes.system import SystemSpec
from regard.training.durable import replace_file, write_synced
from regard.training.run_folder import RECORD, RunFolder
from regard.training.weights import named_weights

FORMATS = {
    "ct2": "a folder for CTranslate2 (Transformers)",
    "onnx": "two graphs for onnxruntime (Transformers that translate)",
    "hf": "a folder for Hugging Face transformers (GPT-2, BERT and its kin, Marian, BART, T5)",
    "arpa": "a file for n-gram toolkits (SRILM, KenLM)",
    **dict.fromkeys(vector_files.FORMATS, "a file of word vectors, also .gz (gensim, spaCy, fastText)"),
}
UNKNOWN_DATA = "imported: what it was trained on is not known here"


class Exchanged(NamedTuple):
    """What was written."""

    out: str
    parameters: int
    vocabulary: int
    left: tuple[str, ...] = ()
    """Weights of a folder that have no place in a run, and were left behind."""


def import_run(source: str | Path, out: str | Path) -> Exchanged:
    """A Hugging Face folder, or a file of word vectors, becomes a run folder."""
    target = Path(out)
    refuse_occupied(target)  # before anything large is read
    taken = read_word_vectors(Path(source)) if Path(source).is_file() else read_folder(Path(source))
    files = taken.lexicon.files()
    with written_aside(target) as aside:
        folder = RunFolder.create(aside, taken.system, 0, UNKNOWN_DATA, files)
        folder.save_weights(taken.weights)
    parameters = sum(tensor.numel() for tensor in taken.weights.values())
    vocabulary = max(tokenizer.size for tokenizer in taken.lexicon.values())
    return Exchanged(str(out), parameters, vocabulary, taken.left)


def export_run(run: str | Path, out: str | Path, to: str, family: str | None = None) -> Exchanged:
    """A run folder becomes what another program reads; ``family`` says as which of its models."""
    if to not in FORMATS:
        raise UsageError(f"--to {to}: there is no such format{nearest(to, FORMATS)}")
    if family is not None and to != "hf":
        raise UsageError(f"--family {family}: a family is a matter of --to hf")
    return (
        _EXPORTS[to](Path(run), Path(out))
        if family is None
        else _export_hugging_face(Path(run), Path(out), family)
    )


def _export_ctranslate2(run: Path, target: Path) -> Exchanged:
    from regard.interop.ctranslate2_folder import export_model

    refuse_occupied(target)
    loaded = load(run, device="cpu")
    export_model(loaded.spec.model, loaded.lexicon, loaded.model.state_dict(), target)
    return _exchanged(target, loaded)


def _export_graphs(run: Path, target: Path) -> Exchanged:
    from regard.interop.onnx_graphs import export_graphs

    refuse_occupied(target)
    loaded = load(run, device="cpu")
    export_graphs(loaded.spec.model, loaded.model, loaded.lexicon, target)
    return _exchanged(target, loaded)


def _exchanged(target: Path, run: Run) -> Exchanged:
    parameters = sum(tensor.numel() for tensor in named_weights(run.model).values())
    return Exchanged(str(target), parameters, max(tokenizer.size for tokenizer in run.lexicon.values()))


def _export_hugging_face(run: Path, target: Path, family: str | None = None) -> Exchanged:
    refuse_occupied(target)
    folder = RunFolder.open(run)
    system = SystemSpec.from_dict(folder.record.spec, where=str(run / RECORD))
    lexicon = read_lexicon(folder, system)
    if not folder.has_weights():
        raise RunError(f"{run}: training has not yet saved any weights here")
    weights = folder.read_weights()
    files = folder_files(system, lexicon, weights, family)
    with written_aside(target) as aside:
        for name, content in files.items():
            (aside / name).parent.mkdir(exist_ok=True)
            write_synced(aside / name, content)
    parameters = sum(tensor.numel() for tensor in weights.values())
    return Exchanged(str(target), parameters, max(tokenizer.size for tokenizer in lexicon.values()))


def _export_vectors(run: Path, target: Path, to: str) -> Exchanged:
    """The table of words that any model has: of its first field, where there are several."""
    loaded = load(run, device="cpu")
    field = next(iter(loaded.lexicon))
    words, vectors = vectors_of(loaded.model, loaded.spec.model, loaded.lexicon[field], field)
    vector_files.write_vectors(target, words, vectors, to)
    return Exchanged(str(target), vectors.size, len(words))


@runtime_checkable
class SaysArpa(Protocol):
    def arpa_lines(self, names: Sequence[str]) -> Iterator[str]: ...


def _export_arpa(run: Path, target: Path) -> Exchanged:
    loaded = load(run, device="cpu")
    if not isinstance(loaded.model, SaysArpa):
        raise UsageError(
            f"{run}: an ARPA file holds counted words, but this run's model is "
            f"{loaded.spec.model.kind()!r} (--to arpa is for recipe ngram)"
        )
    tokenizer = next(iter(loaded.lexicon.values()))
    text = "\n".join(loaded.model.arpa_lines(arpa_names(tokenizer))) + "\n"
    if target.is_dir():
        raise UsageError(f"{target}: is a folder; an ARPA file is to be written here")
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, text.encode())
    return Exchanged(str(target), sum(tensor.numel() for tensor in loaded.model.buffers()), tokenizer.size)


_EXPORTS: dict[str, Callable[[Path, Path], Exchanged]] = {
    "ct2": _export_ctranslate2,
    "onnx": _export_graphs,
    "hf": _export_hugging_face,
    "arpa": _export_arpa,
    **{to: partial(_export_vectors, to=to) for to in vector_files.FORMATS},
}


def arpa_names(tokenizer: Tokenizer) -> list[str]:
    """A word for every token, without white space, which the format is divided by.

    Words as people write them where that leaves no two alike; otherwise with the mark of the space before.
    """
    raw = {number: token for token, number in tokenizer.vocabulary().items()}
    readable = tokenizer.pieces(range(tokenizer.size))
    names = readable if len(set(readable)) == len(readable) else [raw[i] for i in range(tokenizer.size)]
    visible = ["".join(f"\\u{ord(c):04x}" if c.isspace() else c for c in name) for name in names]
    if len(set(visible)) < len(visible):
        twice = next(name for name in visible if visible.count(name) > 1)
        raise UsageError(f"two tokens would both be called {twice!r} in an ARPA file")
    return visible
