"""fairseq's own trainer, transformer, criterion, optimiser and batching over ids that Regard prepared.

It speaks the arena's protocol; or, with ``--minutes``, it trains that long and writes translations to a file.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import protocol
import torch


def allow_mutable_defaults() -> None:
    """fairseq 0.12 and hydra 1.0 share instances as dataclass defaults, which Python 3.11 refuses.

    What Python looks at is whether the default can be hashed. A factory instead would not do: fairseq reads
    the defaults of the fields.
    """
    original = dataclasses._get_field  # type: ignore[attr-defined]

    def lenient(cls: type, name: str, *rest: Any) -> Any:
        default = getattr(cls, name, None)
        if isinstance(default, dataclasses.Field):
            default = default.default
        if dataclasses.is_dataclass(default) and not isinstance(default, type):
            kind = type(default)
            if kind.__hash__ is None:
                kind.__hash__ = object.__hash__
        return original(cls, name, *rest)

    dataclasses._get_field = lenient  # type: ignore[attr-defined]


allow_mutable_defaults()

import fairseq  # noqa: E402
from fairseq import options  # noqa: E402
from fairseq.data import Dictionary, LanguagePairDataset, iterators  # noqa: E402
from fairseq.dataclass.initialize import add_defaults, hydra_init  # noqa: E402
from fairseq.dataclass.utils import convert_namespace_to_omegaconf  # noqa: E402
from fairseq.sequence_generator import SequenceGenerator  # noqa: E402
from fairseq.tasks.translation import TranslationTask  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402

SPECIAL = 4
"""Both sides keep pad, begin, end and unknown first; end and unknown, and so the pieces, have equal ids."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="holds corpus.npz")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--heads", type=int, required=True)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--batch-tokens", type=int, required=True)
    parser.add_argument("--peak", type=float, default=5e-4)
    parser.add_argument("--warmup", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=1, help="fairseq's own default: one loads ahead")
    parser.add_argument("--minutes", type=float, help="train so long instead of speaking the protocol")
    parser.add_argument("--every", type=int, default=1000, help="updates between translations")
    parser.add_argument("--valid", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.minutes is not None and not (asked.valid and asked.out):
        parser.error("--minutes needs --valid and --out")
    return asked


def configuration(asked: argparse.Namespace) -> Any:
    """What ``fairseq-train`` would make of the same command line."""
    line = f"""
        {asked.folder} --task translation --source-lang src --target-lang tgt --cpu --seed 1 --no-progress-bar
        --arch transformer_iwslt_de_en --share-all-embeddings
        --encoder-layers {asked.layers} --decoder-layers {asked.layers}
        --encoder-embed-dim {asked.width} --decoder-embed-dim {asked.width}
        --encoder-ffn-embed-dim {asked.hidden} --decoder-ffn-embed-dim {asked.hidden}
        --encoder-attention-heads {asked.heads} --decoder-attention-heads {asked.heads}
        --dropout {asked.dropout} --attention-dropout 0 --activation-dropout 0
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1
        --optimizer adam --adam-betas (0.9,0.98) --clip-norm 1.0
        --lr {asked.peak} --lr-scheduler inverse_sqrt --warmup-updates {asked.warmup}
        --max-tokens {asked.batch_tokens} --num-workers {asked.workers} --distributed-world-size 1
    """
    hydra_init()
    config = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), line.split())
    )
    add_defaults(config)
    return config


def dictionary_of(vocabulary: int) -> Dictionary:
    dictionary = Dictionary()
    for number in range(SPECIAL, vocabulary):
        dictionary.add_symbol(f"piece{number}")
    assert (dictionary.eos(), dictionary.unk(), len(dictionary)) == (2, 3, vocabulary)
    return dictionary


def with_end(ids: np.ndarray, lengths: np.ndarray, end: int) -> tuple[Sequence[torch.Tensor], np.ndarray]:
    marked = torch.from_numpy(np.insert(ids, np.cumsum(lengths), end))
    return marked.split((lengths + 1).tolist()), lengths + 1


def dataset_of(file: Path, dictionary: Dictionary) -> LanguagePairDataset:
    with np.load(file) as corpus:
        source = with_end(corpus["source_ids"], corpus["source_lengths"], dictionary.eos())
        target = with_end(corpus["target_ids"], corpus["target_lengths"], dictionary.eos())
    return LanguagePairDataset(*source, dictionary, *target, dictionary)


def samples_from(trainer: Trainer) -> Iterator[list[dict[str, Any]]]:
    """Epoch after epoch, as ``fairseq-train`` does it."""
    epochs = trainer.get_train_iterator(epoch=1, load_dataset=False)
    while True:
        batches = epochs.next_epoch_itr(fix_batches_to_gpus=False, shuffle=True)
        trainer.begin_epoch(epochs.epoch)
        yield from iterators.GroupedIterator(batches, 1)
        trainer.lr_step(epochs.epoch)


def translate(task: TranslationTask, model: Any, dataset: LanguagePairDataset) -> list[list[int]]:
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=5)
    found: dict[int, list[int]] = {}
    batches = task.get_batch_iterator(dataset, max_tokens=4096, max_sentences=64).next_epoch_itr(
        shuffle=False
    )
    for sample in batches:
        for number, best in zip(
            sample["id"].tolist(), task.inference_step(generator, [model], sample), strict=True
        ):
            found[number] = [piece for piece in best[0]["tokens"].tolist() if piece != generator.eos]
    return [found[number] for number in range(len(dataset))]


def trained_weights(model: Any) -> int:
    """Without the copies in encoder layers, which only a model loaded from a checkpoint uses."""
    copies = sum(
        weight.numel() for layer in model.encoder.layers for weight in layer.parameters(recurse=False)
    )
    return sum(weight.numel() for weight in model.parameters()) - copies


def main() -> None:
    asked = arguments()
    with np.load(asked.folder / "corpus.npz") as corpus:
        dictionary = dictionary_of(int(corpus["vocabulary"]))
    config = configuration(asked)
    task = TranslationTask(config.task, dictionary, dictionary)
    task.datasets["train"] = dataset_of(asked.folder / "corpus.npz", dictionary)
    torch.manual_seed(1)
    model = task.build_model(config.model)
    trainer = Trainer(config, task, model, task.build_criterion(config.criterion))
    samples = samples_from(trainer)

    def step() -> protocol.Step:
        taken = next(samples)
        trainer.train_step(taken)
        return protocol.Step(int(taken[0]["ntokens"]), taken[0]["target"].numel())

    facts = {
        "parameters": trained_weights(model),
        "vocabulary": len(dictionary),
        "version": fairseq.__version__,
    }
    if asked.minutes is None:
        protocol.ready(**facts)
        protocol.serve(step)
        return

    print(facts, file=sys.stderr)
    sets = {"valid_ids": asked.valid, "test_ids": asked.test}
    held_out = {name: dataset_of(file, dictionary) for name, file in sets.items() if file}
    seconds, updates = 0.0, 0
    while seconds < 60 * asked.minutes:
        began = time.perf_counter()
        step()
        seconds += time.perf_counter() - began
        updates += 1
        if updates % asked.every == 0 or seconds >= 60 * asked.minutes:
            found = {name: translate(task, model, dataset) for name, dataset in held_out.items()}
            with asked.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"minutes": seconds / 60, "updates": updates, **found}) + "\n")


main()
