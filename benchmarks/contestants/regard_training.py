"""Regard's own loop over a recipe: the stepper, the data and the prefetching that ``regard train`` uses."""

import argparse
from itertools import islice
from pathlib import Path

import protocol
import torch

from regard.data.prefetch import prefetch
from regard.recipes.catalogue import recipe
from regard.training.memory import keep_freed_memory
from regard.training.optimisation import groups_of
from regard.training.plan import TrainingSpec
from regard.training.stepping import Stepper, batches_from, set_random


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", required=True)
    parser.add_argument(
        "--folder", type=Path, required=True, help="holds train.src and train.tgt, or text.txt"
    )
    parser.add_argument("--batch-tokens", type=int, help="for pairs")
    parser.add_argument("--set", action="append", default=[])
    asked = parser.parse_args()
    keep_freed_memory()
    pairs = asked.batch_tokens is not None
    sizes = [f"data.batch_tokens={asked.batch_tokens}"] if pairs else []
    spec = recipe(asked.recipe).override([*sizes, "training.minutes=1", *asked.set])
    place = asked.folder / ("train.{src,tgt}" if pairs else "text.txt")
    data = spec.data.prepare(str(place), None, 1, None, None)
    device = torch.device("cpu")
    set_random(device, 1, 0)
    vocabularies = data.lexicon.sizes
    model = spec.model.build(vocabularies)
    assert isinstance(spec.training, TrainingSpec)
    optimiser = spec.training.optimiser.build(groups_of(model.train()))
    schedule = spec.training.schedule.build(spec.training.steps)
    stepper = Stepper(
        model,
        spec.objective.build(),
        optimiser,
        schedule,
        spec.training.clip,
        1,
        device,
        spec.training.shards,
        spec.training.precision,
    )
    batches = batches_from(data, 0, 0, prefetch)
    number = 0

    def step() -> protocol.Step:
        nonlocal number
        number += 1
        placed = list(islice(batches, 1))
        taken = stepper.take(number, placed, "")
        batch = placed[0].batch
        if hasattr(batch, "places"):  # what is read counts, not what of it is guessed
            return protocol.Step(int(batch.tokens.real.sum()), batch.tokens.ids.numel())
        room = batch.target.ids[:, 1:].numel() if pairs else batch.wanted.numel()
        return protocol.Step(taken.tokens, room)

    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=max(vocabularies.values()),
    )
    protocol.serve(step)


main()
