"""eole's own trainer, model, loss, optimiser and batching over ids that Regard prepared."""

import argparse
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eole
import numpy as np
import protocol
import torch
from eole.config.run import TrainConfig
from eole.constants import CorpusTask
from eole.inputters.dynamic_iterator import build_dynamic_dataset_iter
from eole.models.model import get_model_class
from eole.train_single import TrainingInitializer, configure_process
from eole.trainer import build_trainer
from eole.utils import Statistics
from eole.utils.optimizers import Optimizer

SPECIAL = 4
"""Pad, begin, end and unknown: on both sides there are as many of them."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("transformer", "rnn"), required=True)
    parser.add_argument("--folder", type=Path, required=True, help="holds corpus.npz")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--width", type=int, required=True, help="of the embeddings")
    parser.add_argument(
        "--hidden", type=int, required=True, help="of the feed-forward layer, or the RNN's state"
    )
    parser.add_argument("--heads", type=int, default=4, help="of the transformer")
    parser.add_argument("--cell", choices=("GRU", "LSTM"), default="GRU", help="of the RNN")
    parser.add_argument("--input-feed", type=int, default=1, help="of the RNN: 0 runs all steps at once")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--batch-tokens", type=int, required=True)
    parser.add_argument("--peak", type=float, default=5e-4)
    parser.add_argument("--warmup", type=int, default=4000)
    parser.add_argument(
        "--workers", type=int, default=0, help="processes that load ahead; eole's default is 2"
    )
    return parser.parse_args()


def write_text(folder: Path, into: Path) -> tuple[int, int]:
    """Every id becomes a word: eole reads text. Gives the size of the vocabulary and the number of pairs."""
    with np.load(folder / "corpus.npz") as corpus:
        vocabulary = int(corpus["vocabulary"])
        words = np.array([f"p{number}" for number in range(vocabulary)])
        for side in ("source", "target"):
            lengths = corpus[f"{side}_lengths"]
            lines = np.split(words[corpus[f"{side}_ids"]], np.cumsum(lengths)[:-1])
            (into / side).write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    (into / "vocabulary").write_text("\n".join(words[SPECIAL:]) + "\n", encoding="utf-8")
    return vocabulary, len(lengths)


def model_settings(asked: argparse.Namespace) -> dict[str, Any]:
    if asked.kind == "transformer":
        return {
            "architecture": "transformer",
            "layers": asked.layers,
            "hidden_size": asked.width,
            "transformer_ff": asked.hidden,
            "heads": asked.heads,
            "add_qkvbias": True,
            "add_final_linear_bias": True,
            "add_ffnbias": True,
            "embeddings": {
                "word_vec_size": asked.width,
                "position_encoding": True,
                "position_encoding_type": "SinusoidalInterleaved",
            },
            "share_embeddings": True,
            "share_decoder_embeddings": True,
        }
    return {
        "architecture": "custom",
        "layers": asked.layers,
        "hidden_size": asked.hidden,
        "input_feed": asked.input_feed,
        "embeddings": {"word_vec_size": asked.width},
        "encoder": {"encoder_type": "brnn", "rnn_type": asked.cell},
        "decoder": {"decoder_type": "rnn", "rnn_type": asked.cell, "global_attention": "mlp"},
        "share_embeddings": True,
        # eole has no readout between state and embedding, so only equal sizes can share weights.
        "share_decoder_embeddings": asked.width == asked.hidden,
    }


def configuration(asked: argparse.Namespace, texts: Path, pairs: int) -> TrainConfig:
    settings = model_settings(asked)
    return TrainConfig(
        data={"corpus": {"path_src": str(texts / "source"), "path_tgt": str(texts / "target")}},
        src_vocab=str(texts / "vocabulary"),
        tgt_vocab=str(texts / "vocabulary"),
        share_vocab=True,
        seed=1,
        model=settings,
        training={
            "optim": "adam",
            "adam_beta1": 0.9,
            "adam_beta2": 0.98,
            "decay_method": "noam",
            "warmup_steps": asked.warmup,
            # Noam's curve peaks at the rate divided by this root.
            "learning_rate": asked.peak * math.sqrt(settings["hidden_size"] * asked.warmup),
            "max_grad_norm": 1.0,
            "label_smoothing": 0.1,
            "param_init_method": "xavier_uniform",
            "dropout": [asked.dropout],
            "attention_dropout": [0.0],
            "batch_type": "tokens",
            "batch_size": asked.batch_tokens,
            "normalization": "tokens",
            "num_workers": asked.workers,
            # A bucket of several epochs would sort copies of a pair into one batch, where eole drops them.
            "bucket_size": pairs,
            # On by default, it costs time in every step and serves only the log.
            "log_attention_entropy": False,
            "self_attn_backend": "pytorch",
        },
    )


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory() as texts:
        compete(asked, Path(texts))


def compete(asked: argparse.Namespace, texts: Path) -> None:
    vocabulary, pairs = write_text(asked.folder, texts)
    config = configuration(asked, texts, pairs)
    configure_process(config, -1)
    context = TrainingInitializer(config).initialize()
    vocabs, config = context.vocabs, context.config
    assert len(vocabs["tgt"]) == vocabulary, (len(vocabs["tgt"]), vocabulary)
    model = get_model_class(config.model).for_training(config.model, vocabs, config.training, device_id=-1)
    trainer = build_trainer(config, -1, model, vocabs, Optimizer.from_config(model, config))
    padding = trainer.train_loss.padding_idx
    texts_in = build_dynamic_dataset_iter(config, context.transforms, vocabs, task=CorpusTask.TRAIN)
    batches: Iterator[tuple[list[dict[str, torch.Tensor]], int]] = trainer._accum_batches(texts_in)
    statistics = Statistics()

    def step() -> protocol.Step:
        taken, normalisation = next(batches)
        trainer._train_step(taken, normalisation, statistics, Statistics(), step=trainer.optim.training_step)
        target = taken[0]["tgt"][:, 1:]
        return protocol.Step(int(target.ne(padding).sum()), target.numel())

    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=vocabulary,
        version=eole.__version__,
    )
    protocol.serve(step)


# The loading processes, if any, import this file again.
if __name__ == "__main__":
    main()
