"""Train a run; what there is to train."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.apps.commands.options import AsJson, Data, Device, RunDir, Settings, print_json
from regard.core.errors import UsageError


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
    taught_by: Annotated[
        list[Path] | None,
        typer.Option(
            help="Learn also what this run finds likely, with its vocabulary; several teach together."
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
        taught_by=taught_by or (),
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


def shortlist(
    folder: RunDir,
    data: Data,
    best: Annotated[int, typer.Option(help="Words of the target for each of the source.", min=1)] = 40,
    common: Annotated[int, typer.Option(help="Most frequent words that may always be written.", min=1)] = 500,
    as_json: AsJson = False,
) -> None:
    """Learn, from its training data, which words a translator's answers may need: see `run --shortlist`."""
    from regard.apps.training import make_shortlist

    made = make_shortlist(folder, data, best, common)
    if as_json:
        print_json({"run": str(folder), **made._asdict()})
    else:
        print(
            f"{folder}: {made.beside:,} words beside {made.source:,} of the source, and "
            f"{made.common:,} that may always be written"
        )


def thawed(freeze: str | None, layer_decay: float | None) -> list[str]:
    asked = {"freeze": freeze, "layer_decay": layer_decay}
    return [f"training.thawing.{name}={value}" for name, value in asked.items() if value is not None]


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
