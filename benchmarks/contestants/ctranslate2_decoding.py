"""CTranslate2 driven directly: the run converted, the vocabulary in the ``tokenizers`` library, its best
settings."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import decoding
import protocol

import regard
from regard.apps.exchange import export_run
from regard.interop.ctranslate2_specs import names_of


def main() -> None:
    asked = decoding.asked()
    words = regard.load(asked.run, engine="torch").lexicon
    source, target = words["source"], words["target"]
    read, numbers = names_of(source), {name: at for at, name in enumerate(names_of(target))}
    end, cutting, joining = read[source.end], source.to_library(), target.to_library()
    folder = Path(tempfile.mkdtemp()) / "model"
    export_run(asked.run, folder, "ct2")

    def translated(engine: Any, lines: list[str], size: int) -> list[str]:
        cut = cutting.encode_batch_fast(lines, add_special_tokens=False)
        tokens = [[*(read[number] for number in one.ids), end] for one in cut]
        found = engine.translate_batch(
            tokens,
            beam_size=asked.beam,
            max_batch_size=size,
            batch_type="tokens",
            max_decoding_length=2 * max(map(len, tokens)) + 10,
            min_decoding_length=0,  # the same search: by itself it gives a beam no answer without words
        )
        return [joining.decode([numbers[name] for name in one.hypotheses[0]]) for one in found]

    def everything(engine: Any, size: int) -> list[str]:
        if asked.alone is None:
            return translated(engine, asked.lines, size)
        return [text for line in asked.lines for text in translated(engine, [line], size)]

    cores = (
        len(os.sched_getaffinity(0))
        if "OMP_NUM_THREADS" not in os.environ
        else int(os.environ["OMP_NUM_THREADS"])
    )
    # One thread for each of several workers is best for many lines; for one line all threads may be.
    driven = (
        [(cores, 1, size) for size in (512, 1024, 2048, 4096)]
        if asked.alone is None
        else [(1, threads, 1024) for threads in sorted({1, cores})]
    )
    precisions = ("float32", "int8") if asked.precision == "auto" else (asked.precision,)
    settings = [(precision, *one) for precision in precisions for one in driven]

    def seconds(use: Callable[[], list[str]]) -> float:
        began = time.perf_counter()
        use()
        return time.perf_counter() - began

    best, taken = None, float("inf")
    for precision, inter, intra, size in settings:
        engine = ctranslate2.Translator(
            str(folder), compute_type=precision, inter_threads=inter, intra_threads=intra
        )
        use = lambda engine=engine, size=size: everything(engine, size)  # noqa: E731
        if (found := min(seconds(use) for _ in range(2))) < taken:
            best, taken, chosen = use, found, (precision, inter, intra, size)
    assert best is not None
    decoding.leave(best(), asked.answers)
    precision, workers, threads, tokens = chosen
    protocol.ready(
        version=ctranslate2.__version__,
        precision=precision,
        workers=workers,
        threads=threads,
        batch_tokens=tokens,
    )
    protocol.serve(lambda: decoding.answered(best()))


main()
