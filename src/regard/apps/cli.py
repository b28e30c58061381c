"""The command line. Every heavy import is inside the command that needs it: ``--help`` must be instant."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.core.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.apps.inspector import Inspected
    from regard.apps.session import Run
    from regard.search.search import SearchSpec
    from regard.tasks.answers import Answer

app = typer.Typer(
    help="Attention-era sequence models: train on a laptop, decode fast, see what the model looks at.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

RunDir = Annotated[Path, typer.Argument(help="Run folder made by `regard train`.", show_default=False)]
Data = Annotated[
    str,
    typer.Option(
        help="TSV, CSV, JSONL, Parquet, two line-aligned files 'x.en,x.de' or 'x.{en,de}', a folder with "
        "train/valid/test files, - for standard input, or dates|copy|reverse|sort.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one field of the spec; may be repeated."),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 …; the fastest there is by default.")]
With = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        help="Ask these runs too, as one with the first (an ensemble, an interpolation); one that reads "
        "backwards fills the ___ of a text together with a forward one.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(help="Shares of the runs between commas, the first run's first; equal if not given."),
]
EngineName = Annotated[
    str, typer.Option("--engine", help="auto (the fastest that can do it), torch or ctranslate2.")
]
PrecisionName = Annotated[
    str,
    typer.Option(
        "--precision", help="Of CTranslate2: float32, int8, or auto for the faster on this machine."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command()
def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe (see `regard recipes`), a spec in a .yaml file, or a run for its spec.",
            show_default=False,
        ),
    ],
    data: Data,
    out: Annotated[Path, typer.Option(help="Run folder; the same command resumes it.", show_default=False)],
    valid: Annotated[str | None, typer.Option(help="Validation data; held out when not given.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates of the weights, in all.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Training time, in all.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same data, same run.")] = 1,
    settings: Settings = None,
    start_from: Annotated[
        Path | None, typer.Option("--from", help="Start from the weights and vocabulary of another run.")
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Take over the vocabulary of another run, so that both can be mixed.")
    ] = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option(
            help="Start the table of words from a file of word vectors (word2vec, GloVe) or from a run; "
            "target=FILE names the field."
        ),
    ] = None,
    freeze: Annotated[
        str | None,
        typer.Option(
            help="With --from: none, all, embeddings or gradual (a layer less every epoch); embeddings also "
            "keeps --vectors as they are."
        ),
    ] = None,
    layer_decay: Annotated[
        float | None, typer.Option(help="With --from: rate of a layer as a share of the next one's.")
    ] = None,
    device: Device = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a recipe on a file of examples. The same command goes on where it stopped."""
    from regard.apps.announcing import Announcements
    from regard.apps.training import train as train_run
    from regard.training.progress import progress

    trained = train_run(
        recipe,
        data,
        out,
        valid=valid,
        steps=steps,
        minutes=minutes,
        seed=seed,
        settings=[*thawed(freeze, layer_decay), *(settings or [])],
        start_from=start_from,
        vocabulary=vocabulary,
        vectors=vectors or (),
        device=device,
        watchers=progress(quiet),
        listener=None if quiet else Announcements(),
    )
    result = trained.result
    if as_json:
        print_json({"out": str(out), **result._asdict()})
    else:
        scores = ", ".join(f"{name} {value:.4g}" for name, value in result.scores.items())
        print(
            f"{out}: best weights from step {result.best_step} of {result.step} ({result.variant}): {scores}"
        )


@app.command()
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
    as_json: AsJson = False,
) -> None:
    """Answer every line of a file, in order."""
    from regard.apps.bulk import Destination, write_document, write_lines
    from regard.data.lines import read_lines
    from regard.data.translatable.document import format_of
    from regard.tasks.task import WINDOW, Asked, Wishes

    loaded = asked_run(folder, others, weights, device, engine, precision)
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
            kind, file, out, lambda texts: loaded.stream(texts, search, wishes, truncate, detail=False)
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
            Asked((), wishes, truncate=truncate, keep=search_tree, detail=as_json),
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
        detail=as_json,
    )
    for answer in answers:
        print(said_answer(loaded, answer, as_json, search_tree), flush=True)


@app.command(name="eval")
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
    as_json: AsJson = False,
) -> None:
    """The task's metric on given data, with its signature."""
    from regard.apps.examples import test_records

    loaded = asked_run(folder, others, weights, device, engine, precision)
    search = chosen_search(loaded, beam, greedy, False, None, settings or [])
    answered_by = loaded.answered_by(search)
    say_engine(answered_by)
    evaluation = loaded.evaluate(test_records(data, loaded.spec.data), metric, search)
    if as_json:
        print_json(evaluation.to_dict() | {"engine": answered_by})
    else:
        for number, (name, value) in enumerate(evaluation.scores.items()):
            print(f"{name} {value:.4f}" + (f" on {evaluation.examples:,} examples" if number == 0 else ""))
        print(evaluation.signature)


@app.command()
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


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="Show this recipe's full spec.")] = None,
    fields: Annotated[bool, typer.Option("--fields", help="Explain every field --set can change.")] = False,
    as_json: AsJson = False,
) -> None:
    """The systems there are, or the whole spec of one."""
    from regard.core.spec import documented
    from regard.recipes.catalogue import RECIPES, recipe
    from regard.recipes.figures import FIGURES

    if fields and name is None:
        raise UsageError("--fields explains one recipe: give its name")
    if name is not None and fields:
        for field in documented(recipe(name)):
            print(f"{field.path} = {json.dumps(field.value, ensure_ascii=False)}")
            if field.meaning:
                print(f"    {field.meaning}")
    elif name is not None:
        spec = recipe(name)
        reached = "".join(f"# reached {figure}\n" for figure in FIGURES.get(name, ()))
        print(spec.to_json() if as_json else reached + spec.to_yaml(), end="\n" if as_json else "")
    elif as_json:
        reached_by = {key: [figure._asdict() for figure in FIGURES.get(key, ())] for key in RECIPES}
        print_json({key: entry._asdict() | {"reached": reached_by[key]} for key, entry in RECIPES.items()})
    else:
        width = max(map(len, RECIPES))
        for key, entry in RECIPES.items():
            print(f"{key:<{width}}  {entry.summary} ({entry.paper})")
            for figure in FIGURES.get(key, ()):
                print(f"{'':<{width}}    {figure}")


@app.command()
def diff(
    left: Annotated[str, typer.Argument(help="A run folder, a recipe or a spec file.", show_default=False)],
    right: Annotated[str, typer.Argument(help="Another.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """In which fields two runs, recipes or spec files differ."""
    from regard.apps.examples import spec_of
    from regard.core.spec import diff as differences

    rows = differences(spec_of(left), spec_of(right))
    if as_json:
        print_json([{"field": path, "left": a, "right": b} for path, a, b in rows])
    else:
        for path, a, b in rows:
            print(f"{path}: {json.dumps(a, ensure_ascii=False)} → {json.dumps(b, ensure_ascii=False)}")


@app.command()
def look(
    folder: RunDir,
    other: Annotated[Path | None, typer.Argument(help="A second run, shown beside the first.")] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="What to look at; repeatable with --html and --json.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Look at this output instead of the model's own, in order.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page here.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others can see the page there.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Look into a run, or two side by side: in a browser, as one HTML file, or as JSON."""
    from regard.apps.inspector import Inspected, question_of, refuse_missing, self_contained
    from regard.training.durable import replace_file

    texts = text or []
    if target and len(target) != len(texts):
        raise UsageError(f"{len(texts)} --text but {len(target)} --target: give one for each, or none")
    if (html is not None or as_json) and not texts:
        raise UsageError("--html and --json show given texts: give at least one --text")
    folders = [folder] if other is None else [folder, other]
    refuse_missing(folders)
    runs = [Inspected(path, device) for path in folders]
    targets: list[str | None] = [*target] if target else [None] * len(texts)
    questions = [question_of(source, wanted) for source, wanted in zip(texts, targets, strict=True)]
    if html is not None:
        title = "regard · " + " · ".join(run.name for run in runs)
        replace_file(html, self_contained(runs, questions, title).encode())
        print(html)
    if as_json:
        for run in runs:
            for question in questions:
                print_json({"run": run.name, **run.look(question, steps=True)})
    if html is None and not as_json:
        serve_inspector(runs, texts, host, port, browser)


@app.command(name="import")
def import_(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder of a GPT-2, BERT, RoBERTa, ALBERT, ELECTRA, DistilBERT, Marian, BART or T5 as "
            "Hugging Face saves it, or a file of word vectors (word2vec, GloVe).",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Argument(help="Run folder to write.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make a run of a Hugging Face folder or of a file of word vectors, to be used like any other."""
    from regard.apps.exchange import import_run

    done = import_run(source, out)
    if as_json:
        print_json(done._asdict())
    else:
        print(f"{out}: {done.parameters:,} parameters, vocabulary {done.vocabulary:,}, from {source}")
        if done.left:
            more = f" and {len(done.left) - 4} more" if len(done.left) > 4 else ""
            print(
                f"left behind, as a run has no place for it: {', '.join(done.left[:4])}{more}",
                file=sys.stderr,
            )


@app.command()
def export(
    folder: RunDir,
    out: Annotated[
        Path, typer.Argument(help="Folder (hf, ct2, onnx) or file (all others).", show_default=False)
    ],
    to: Annotated[
        str,
        typer.Option(
            help="hf: for Hugging Face transformers; ct2: for CTranslate2; onnx: for onnxruntime; "
            "arpa: n-grams as a file; word2vec, word2vec-binary or glove: the table of words as a file."
        ),
    ],
    family: Annotated[
        str | None, typer.Option(help="hf: as bert, roberta, electra …; the nearest by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a run as another program reads it."""
    from regard.apps.exchange import export_run

    done = export_run(folder, out, to, family)
    if as_json:
        print_json(done._asdict())
    else:
        print(f"{out}: {done.parameters:,} parameters, vocabulary {done.vocabulary:,}, from {folder}")


@app.command()
def serve(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]DIR…", help="Runs; a name is the folder's if not given.", show_default=False
        ),
    ],
    host: Annotated[str, typer.Option(help="Where to listen; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.", min=0, max=65535)] = 8000,
    languages: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]FROM:TO", help="What a run translates, as in en:de; repeatable."),
    ] = None,
    detect: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The classifier among the runs that tells languages apart."),
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="Ask for a key; see `regard key`.")] = None,
    per_minute: Annotated[int | None, typer.Option(help="Requests a minute of one client.", min=1)] = None,
    queue: Annotated[int, typer.Option(help="Requests that may wait; others get 503.", min=1)] = 256,
    deadline: Annotated[float, typer.Option(help="Seconds until an answer is given up.", min=0.01)] = 60.0,
    texts: Annotated[int, typer.Option(help="Most texts of a request.", min=1)] = 128,
    body: Annotated[int, typer.Option(help="Most bytes of a request.", min=1)] = 2_000_000,
    loaded: Annotated[
        int | None, typer.Option(help="Runs in memory at a time; all by default.", min=1)
    ] = None,
    preload: Annotated[bool, typer.Option("--preload", help="Load all runs before answering.")] = False,
    inspect: Annotated[
        bool, typer.Option("--look", help="The inspector of the first two runs under /look.")
    ] = False,
    drain: Annotated[float, typer.Option(help="Seconds to finish what was accepted.", min=0)] = 60.0,
    device: Device = None,
) -> None:
    """Answer over HTTP, for clients of LibreTranslate and OpenAI and for your own."""
    from functools import partial

    from regard.apps.serving.assembly import Wanted, application
    from regard.apps.serving.limits import Limits
    from regard.apps.serving.offers import mounted_inspector, offers_of
    from regard.apps.serving.process import serve as serve_forever
    from regard.apps.session import load

    limits = Limits(
        queue=queue, deadline=deadline, texts=texts, body=body, per_minute=per_minute, drain=drain
    )
    wanted = Wanted(offers_of(folders, languages or []), limits, keys, detect, preload, loaded)
    page = mounted_inspector(device, [host]) if inspect else None
    serve_forever(application(wanted, partial(load, device=device), page), host, port, drain)


@app.command()
def key(
    file: Annotated[Path, typer.Argument(help="File of keys; made if there is none.", show_default=False)],
    name: Annotated[str, typer.Argument(help="Whose key it is.", show_default=False)],
    per_minute: Annotated[int | None, typer.Option(help="Requests a minute of this key.", min=1)] = None,
) -> None:
    """Make a key for `regard serve --keys FILE`. It is shown once; the file holds its hash."""
    from regard.apps.serving.keys import create_key

    print(create_key(file, name, per_minute))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What this machine has, and whether anything is in the way."""
    from regard.apps.doctor import examine

    findings = examine()
    if as_json:
        print_json({finding.what: finding.value for finding in findings})
    else:
        for finding in findings:
            print(f"{'ok ' if finding.good else '-- '} {finding.what}: {finding.value}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/demo"),
    steps: Annotated[int | None, typer.Option(help="Train for so many steps only.", min=1)] = None,
) -> None:
    """Learn to read dates in forty languages, in two minutes, and show where the model looked."""
    from regard.apps.demo import show

    show(out, steps)


def serve_inspector(runs: "list[Inspected]", texts: list[str], host: str, port: int, browser: bool) -> None:
    import webbrowser
    from urllib.parse import quote

    from regard.apps.inspector_server import serve

    def ready(address: str) -> None:
        if texts:
            address += f"#text={quote(texts[0])}"
        print(f"{address}\nCtrl-C ends it.", flush=True)
        if browser:
            webbrowser.open(address)

    serve(runs, host, port, ready)


def thawed(freeze: str | None, layer_decay: float | None) -> list[str]:
    asked = {"freeze": freeze, "layer_decay": layer_decay}
    return [f"training.thawing.{name}={value}" for name, value in asked.items() if value is not None]


def asked_run(
    folder: Path,
    others: list[Path] | None,
    weights: str | None,
    device: str | None,
    engine: str = "torch",
    precision: str = "float32",
) -> "Run":
    """One run, or several asked as one."""
    from regard.apps.session import load, load_together
    from regard.engines.choice import wanted_engine, wanted_precision

    if not others:
        if weights is not None:
            raise UsageError("--weights shares the say among several runs: name the others with --with")
        return load(folder, device, wanted_engine(engine), wanted_precision(precision))
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


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


def main() -> None:
    """Errors become one clear line on stderr and an exit code; results go to stdout only."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except RegardError as error:
        print(f"regard: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has seen enough (`regard run … | head`); nothing more may be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"regard: {error.filename or 'input/output'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
