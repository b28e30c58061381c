"""Regard's own loop over a recipe: the stepper, the data and the prefetching that ``regard train`` uses."""

import argparse
from itertools import islice
from pathlib import Path

import protocol
import torch

from regard.data.pairs import Pairs
from regard.data.prefetch import prefetch
from regard.recipes.catalogue import recipe
from regard.training.memory import keep_freed_memory
from regard.training.optimisation import groups_of
from regard.training.stepping import Stepper, batches_from, set_random


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="holds train.src, train.tgt")
    parser.add_argument("--batch-tokens", type=int, required=True)
    parser.add_argument("--set", action="append", default=[])
    asked = parser.parse_args()
    keep_freed_memory()
    settings = [f"data.batch_tokens={asked.batch_tokens}", "training.minutes=1", *asked.set]
    spec = recipe(asked.recipe).override(settings)
    pairs = Pairs.prepare(spec.data, str(asked.folder / "train.{src,tgt}"), seed=1)
    device = torch.device("cpu")
    set_random(device, 1, 0)
    model = spec.model.build({"source": pairs.source_tokenizer.size, "target": pairs.target_tokenizer.size})
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
    )
    batches = batches_from(pairs, 0, 0, prefetch)
    number = 0

    def step() -> protocol.Step:
        nonlocal number
        number += 1
        placed = list(islice(batches, 1))
        taken = stepper.take(number, placed, "")
        target = placed[0].batch.target.ids
        return protocol.Step(taken.tokens, target.shape[0] * (target.shape[1] - 1))

    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=pairs.target_tokenizer.size,
    )
    protocol.serve(step)


main()
