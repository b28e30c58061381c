"""Ask a run: answers, vectors, metrics and probabilities of given texts."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.apps.commands.options import (
    AsJson,
    Data,
    Device,
    EngineName,
    PrecisionName,
    RunDir,
    Settings,
    Weights,
    With,
    WithShortlist,
    print_json,
)
from regard.core.errors import UsageError

if TYPE_CHECKING:
    from regard.apps.session import Run
    from regard.search.search import SearchSpec
    from regard.tasks.answers import Answer, Detail


def run(
    folder: RunDir,
    file: Annotated[Path, typer.Argument(help="Lines to answer; standard input by default.")] = Path("-"),
    beam: Annotated[int | None, typer.Option(help="Beam search with this many hypotheses.", min=1)] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the most probable token.")] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Draw; see --set search.temperature=0.7.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Sampling: below 1 more sober.", min=0)] = None,
    top_k: Annotated[int | None, typer.Option(help="Sampling: of so many tokens only.", min=1)] = None,
    top_p: Annotated[float | None, typer.Option(help="Sampling: of this much probability only.")] = None,
    seed: Annotated[int | None, typer.Option(help="Sampling: another seed, other draws.", min=0)] = None,
    no_repeat: Annotated[
        int | None, typer.Option(help="No sequence of so many tokens occurs twice in an answer.", min=1)
    ] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Above 1: tokens that occurred become less likely.", min=1)
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Longest continuation of a prompt.", min=1)] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Stop before this text; repeatable.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Show every token as it comes.")] = False,
    best: Annotated[int | None, typer.Option(help="Answers per line.", min=1)] = None,
    prefix: Annotated[str, typer.Option(help="How every answer must begin.")] = "",
    forbid: Annotated[
        list[str] | None, typer.Option(help="A word no answer may contain; repeatable.")
    ] = None,
    require: Annotated[list[str] | None, typer.Option(help="A word every answer must contain.")] = None,
    truncate: Annotated[bool, typer.Option("--truncate", help="Cut inputs that are too long.")] = False,
    columns: Annotated[
        bool,
        typer.Option("--columns", help="A tagger: the file is a word a line; its lines get one column more."),
    ] = False,
    search_tree: Annotated[bool, typer.Option("--tree", help="Show the whole search.")] = False,
    embed: Annotated[bool, typer.Option("--embed", help="A vector for every line, as JSON.")] = False,
    pooling: Annotated[
        str | None, typer.Option(help="--embed: mean, first, last, max, mix of all layers, or gist.")
    ] = None,
    normalise: Annotated[
        bool | None, typer.Option("--normalise/--no-normalise", help="--embed: vectors of length one.")
    ] = None,
    layer: Annotated[
        int | None, typer.Option(help="--embed: 0 is what goes into the first; the last by default.")
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="--embed: a vector for every word, where it stands.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write answers here, safe against a kill; --embed: all vectors, as .npy."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --out: go on behind what an earlier call answered.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="po, xliff, srt, markdown or html: answer its texts, keep the rest; lines: just lines. "
            "By the file's name if not given.",
        ),
    ] = None,
    others: With = None,
    weights: Weights = None,
    settings: Settings = None,
    device: Device = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "float32",
    shortlist: WithShortlist = False,
    as_json: AsJson = False,
) -> None:
    """Answer every line of a file, in order."""
    from regard.apps.bulk import Destination, write_document, write_lines
    from regard.data.lines import read_lines
    from regard.data.translatable.document import format_of
    from regard.tasks.task import WINDOW, Asked, Wishes

    loaded = asked_run(folder, others, weights, device, engine, precision, shortlist)
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    sample = sample or any(value is not None for value in drawing.values())
    repetition = [
        {"kind": kind, name: value}
        for kind, name, value in (
            ("no_repeat", "length", no_repeat),
            ("repetition_penalty", "factor", repetition_penalty),
        )
        if value is not None
    ]
    kept = [f"search.constraints={json.dumps(repetition)}"] if repetition else []
    search = chosen_search(loaded, beam, greedy, sample, best, [*kept, *(settings or [])], drawing, tokens)
    wishes = Wishes(prefix, tuple(forbid or ()), tuple(require or ()), tuple(stop or ()))
    detail: Detail = "tokens" if as_json else "scores" if search_tree else "text"
    interactive = str(file) == "-" and sys.stdin.isatty()
    if resume and out is None:
        raise UsageError("--resume goes on with a file: name it with --out")
    kind = None if columns or embed else format_of(file, form)
    if kind is not None:
        if as_json or search_tree or resume:
            raise UsageError(
                f"{file} is {kind}: its texts are replaced, so not with --json, --tree or --resume"
            )
        say_engine(loaded.answered_by(search, wishes))
        write_document(
            kind, file, out, lambda texts: loaded.stream(texts, search, wishes, truncate, detail="text")
        )
        return
    if columns:
        from regard.apps.columns import blocks_of, with_tags

        if not as_json:
            for tagged in with_tags(loaded, blocks_of(loaded, file)):
                print("\n".join(tagged), flush=True)
            return
        lines: Iterable[str] = (block.text for block in blocks_of(loaded, file) if block.text)
    else:
        lines = asked() if interactive else (line.text for line in read_lines(file))
    asked_of_vectors = {"--pooling": pooling, "--normalise": normalise, "--layer": layer}
    if embed:
        from regard.apps.embedding import print_vectors, summing_up

        summing = summing_up(loaded.spec.task.summing_up(), pooling, normalise, layer)
        hidden = interactive or not sys.stderr.isatty() or (out is None and sys.stdout.isatty())
        say_engine(loaded.embedded_by(summing))
        print_vectors(loaded, shown_progress(lines, hidden), summing, words, out, truncate)
        return
    if (
        strays := [name for name, value in asked_of_vectors.items() if value is not None]
        + ["--words"] * words
    ):
        raise UsageError(f"{strays[0]} says which vectors are wanted: give it with --embed")
    if stream or (interactive and not as_json and not search_tree):
        if as_json or search_tree or (best or 1) > 1:
            raise UsageError("--stream shows one answer as it comes: not with --json, --tree or --best")
        for line in lines:
            for piece in loaded.pieces(line, search, wishes):
                print(piece, end="", flush=True)
            print(flush=True)
        return
    say_engine(loaded.answered_by(search, wishes, search_tree))
    if out is not None:
        write_lines(
            loaded,
            search,
            Asked((), wishes, truncate=truncate, keep=search_tree, detail=detail),
            lines,
            lambda answer: said_answer(loaded, answer, as_json, search_tree),
            Destination(file, out, resume, as_json),
        )
        return
    answers = loaded.stream(
        shown_progress(lines, hidden=interactive or not sys.stderr.isatty() or sys.stdout.isatty()),
        search,
        wishes,
        truncate,
        keep=search_tree,
        window=1 if interactive else WINDOW,
        detail=detail,
    )
    for answer in answers:
        print(said_answer(loaded, answer, as_json, search_tree), flush=True)


def evaluate(
    folder: RunDir,
    data: Data,
    metric: Annotated[str | None, typer.Option(help="bleu, chrf, exact …; the recipe's by default.")] = None,
    beam: Annotated[int | None, typer.Option(help="Beam search with this many hypotheses.", min=1)] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the most probable token.")] = False,
    others: With = None,
    weights: Weights = None,
    settings: Settings = None,
    device: Device = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "float32",
    shortlist: WithShortlist = False,
    as_json: AsJson = False,
) -> None:
    """The task's metric on given data, with its signature."""
    from regard.apps.examples import test_records

    loaded = asked_run(folder, others, weights, device, engine, precision, shortlist)
    search = chosen_search(loaded, beam, greedy, False, None, settings or [])
    answered_by = loaded.evaluated_by(search)
    say_engine(answered_by)
    evaluation = loaded.evaluate(test_records(data, loaded.spec.data), metric, search)
    if as_json:
        print_json(evaluation.to_dict() | {"engine": answered_by})
    else:
        for number, (name, value) in enumerate(evaluation.scores.items()):
            print(f"{name} {value:.4f}" + (f" on {evaluation.examples:,} examples" if number == 0 else ""))
        print(evaluation.signature)


def score(
    folder: RunDir,
    data: Data,
    truncate: Annotated[bool, typer.Option("--truncate", help="Cut inputs that are too long.")] = False,
    others: With = None,
    weights: Weights = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Log-probability of given outputs: a number a line, or token by token with --json."""
    from regard.apps.examples import test_records

    loaded = asked_run(folder, others, weights, device)
    for scored in loaded.score(test_records(data, loaded.spec.data), truncate):
        if as_json:
            print_json(scored.to_dict())
        else:
            print(f"{scored.log_prob:.6f}")


def asked_run(
    folder: Path,
    others: list[Path] | None,
    weights: str | None,
    device: str | None,
    engine: str = "torch",
    precision: str = "float32",
    shortlist: bool = False,
) -> "Run":
    """One run, or several asked as one."""
    from regard.apps.session import load
    from regard.apps.settling import settle
    from regard.engines.choice import wanted_engine, wanted_precision

    if others:
        loaded = _together(folder, others, weights, device, engine, shortlist)
    elif weights is not None:
        raise UsageError("--weights shares the say among several runs: name the others with --with")
    else:
        loaded = load(folder, device, wanted_engine(engine), wanted_precision(precision), shortlist)
    settle()
    return loaded


def _together(
    folder: Path,
    others: list[Path],
    weights: str | None,
    device: str | None,
    engine: str,
    shortlist: bool,
) -> "Run":
    from regard.apps.session import load_together
    from regard.engines.choice import wanted_engine

    if shortlist:
        raise UsageError("--shortlist is of one run: not with --with")
    try:
        shares = None if weights is None else [float(share) for share in weights.split(",")]
    except ValueError:
        raise UsageError(f"--weights takes numbers between commas, got {weights!r}") from None
    return load_together([folder, *others], shares, device, wanted_engine(engine))


def say_engine(answered_by: str) -> None:
    print(f"engine: {answered_by}", file=sys.stderr, flush=True)


def asked() -> Iterator[str]:
    """Lines that a person types, until the end of input."""
    import contextlib
    import readline  # noqa: F401 (gives input() a history)

    with contextlib.suppress(EOFError):
        while True:
            yield input("> ")


def chosen_search(
    loaded: "Run",
    beam: int | None,
    greedy: bool,
    sample: bool,
    best: int | None,
    settings: list[str],
    drawing: dict[str, float | int | None] | None = None,
    tokens: int | None = None,
) -> "SearchSpec":
    """The run's own search, with what was asked for on the command line."""
    if (beam is not None) + greedy + sample > 1:
        raise UsageError("--beam, --greedy and --sample exclude one another: give one of them")
    strays = [setting for setting in settings if not setting.startswith("search.")]
    if strays:
        raise UsageError(
            f"--set {strays[0]}: a trained run can only change search.… (see `regard recipes NAME`)"
        )
    kind = "greedy" if greedy else "sampling" if sample else "beam" if beam is not None else None
    spec = loaded.spec
    if kind is not None and spec.search.kind() != kind:
        spec = spec.override([f"search.kind={kind}"])
    asked = {"search.size": beam, "search.best": best, "search.longest_extra": tokens}
    asked |= {f"search.{name}": value for name, value in (drawing or {}).items()}  # type: ignore[misc]
    if best is not None and beam is None and kind is None and spec.search.kind() == "beam":
        asked["search.size"] = max(best, spec.search.to_dict()["size"])  # type: ignore[type-var, assignment]
    spec = spec.override([f"{key}={value}" for key, value in asked.items() if value is not None])
    return spec.override(settings).search


def said_answer(loaded: "Run", answer: "Answer", as_json: bool, tree: bool) -> str:
    from regard.inspection.alignment import alignment, word_alignment
    from regard.search.kept import draw

    if not as_json:
        texts = [candidate.text for candidate in answer.candidates] or [""]
        parts = [loaded.task().shown(answer.source, text) for text in texts]
        if tree and answer.search is not None:
            parts.append(draw(answer.search, lambda token: loaded.task().pieces([token])[0]))
        return "\n".join(parts)
    printed = answer.to_dict()
    if answer.candidates:
        trace = loaded.trace(answer.source, answer.text)
        found = alignment(trace)
        printed["alignment"] = None if found is None else found.round(4).tolist()
        words = None if found is None else word_alignment(found, trace.predictions, trace.source)
        printed["word_alignment"] = words and words._asdict()
    return json.dumps(printed, ensure_ascii=False)


def shown_progress(lines: Iterable[str], hidden: bool) -> Iterator[str]:
    if hidden:
        yield from lines
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(lines, description="answering", console=Console(stderr=True), total=None)
