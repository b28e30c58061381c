"""A Marian model in Hugging Face's Trainer; each optimiser step waits for the arena."""

import argparse
from pathlib import Path
from typing import Any

import protocol
import torch
import transformers
from torch.utils.data import DataLoader, Dataset
from transformers import MarianConfig, MarianMTModel, Trainer, TrainingArguments
from turns import TakesTurns

from benchmarks.corpus import BEGIN, END, PAD, Corpus, batches, padded

IGNORED = -100


class Rows(Dataset[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> int:
        return row


class ByTokens(Trainer):
    """Batches by tokens instead of by rows; everything else is the Trainer's own."""

    corpus: Corpus
    budget: int
    turns: TakesTurns

    def get_train_dataloader(self) -> DataLoader[Any]:
        sources, targets = self.corpus.source.rows(), self.corpus.target.rows()

        def collate(rows: list[int]) -> dict[str, torch.Tensor]:
            wanted = padded([targets[row] for row in rows], begin=False, end=True)
            source = torch.from_numpy(padded([sources[row] for row in rows], begin=False, end=True))
            labels = torch.from_numpy(wanted)
            self.turns.size = protocol.Step(int((labels != PAD).sum()), labels.numel())
            return {
                "input_ids": source,
                "attention_mask": (source != PAD).long(),
                # The Trainer takes the labels away to smooth them, so the model cannot shift them itself.
                "decoder_input_ids": torch.cat((torch.full_like(labels[:, :1], BEGIN), labels[:, :-1]), 1),
                "labels": labels.masked_fill(labels == PAD, IGNORED),
            }

        return DataLoader(
            Rows(len(sources)),
            batch_sampler=[rows.tolist() for rows in batches(self.corpus, self.budget, 0)],
            collate_fn=collate,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("layers", "width", "hidden", "heads", "batch-tokens"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16, as torch does it")
    asked = parser.parse_args()
    corpus = Corpus.load(asked.folder / "corpus.npz")
    model = MarianMTModel(
        MarianConfig(
            vocab_size=corpus.vocabulary,
            d_model=asked.width,
            encoder_layers=asked.layers,
            decoder_layers=asked.layers,
            encoder_attention_heads=asked.heads,
            decoder_attention_heads=asked.heads,
            encoder_ffn_dim=asked.hidden,
            decoder_ffn_dim=asked.hidden,
            dropout=asked.dropout,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=BEGIN,
            eos_token_id=END,
            decoder_start_token_id=BEGIN,
            forced_eos_token_id=END,
        )
    )
    arguments = TrainingArguments(
        output_dir=str(asked.folder / "hugging_face"),
        max_steps=1_000_000,
        learning_rate=1e-4,
        label_smoothing_factor=0.1,
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        use_cpu=True,
        bf16=asked.bfloat16,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    turns = TakesTurns()
    trainer = ByTokens(model=model, args=arguments, train_dataset=Rows(len(corpus.source.lengths)))
    trainer.corpus, trainer.budget, trainer.turns = corpus, asked.batch_tokens, turns
    trainer.add_callback(turns)
    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=corpus.vocabulary,
        version=transformers.__version__,
    )
    trainer.train()


main()
